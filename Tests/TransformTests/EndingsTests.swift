import EventLoop
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What events say has ended, taken out of a mailbox.
@Suite struct EndingsTests {
  @Test func `what has ended goes when the requests have come so far, and nothing of another apns-id goes`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 1)])
      try await lane.register(tokens, for: "ada")
      let id = NotificationID(high: 7, low: 7)
      try await lane.request("device:\(tokens[0])", payload: #"{"aps":{"alert":"first"}}"#, id: "\(id)")
      await lane.eventually("it waits") { try await lane.waiting(tokens[0]) == 1 }
      let field = try await lane.probe.command("HKEYS", .text(TransformFixture.keys.mailbox(tokens[0]))).array?.first?.bytes
      let revision = try #require(field.flatMap { $0.withUnsafeBytes { Revision(bytes: $0) } })
      let endings = EndingsLane(lane.redis.address)
      var left: [Int] = []
      for ended in [NotificationID(high: 8, low: 8), id] {
        try await endings.end(ended, revision, at: tokens[0])
        left.append(try await lane.waiting(tokens[0]))
      }
      await endings.close()
      await endings.loop.close()
      #expect(left == [1, 0])
    }
  }
}

/// Endings on a loop of their own.
private actor EndingsLane {
  nonisolated let loop = EventLoop(name: "endings")
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let address: RedisAddress
  private var parts: Parts?

  private final class Parts {
    let shards: Shards
    let endings: Endings
    var waiting: CheckedContinuation<Void, Never>?
    var failure: StoreError?

    init(on loop: EventLoop, _ address: RedisAddress) {
      var configuration = StoreConfiguration(address, buckets: TransformFixture.buckets)
      configuration.callDeadlineMilliseconds = 60_000
      shards = Shards(on: loop, configuration, clientName: "test")
      endings = Endings(Mailboxes(shards))
      endings.onAnswer = { [unowned self] in answered($0) }
    }

    private func answered(_ error: StoreError?) {
      failure = failure ?? error
      guard endings.deletions == 0 else { return }
      waiting?.resume()
      waiting = nil
    }
  }

  init(_ address: RedisAddress) { self.address = address }

  func end(_ id: NotificationID, _ revision: Revision, at token: String) async throws {
    let parts = parts ?? Parts(on: loop, address)
    if self.parts == nil {
      self.parts = parts
      parts.shards.start()
      try await parts.shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    }
    #expect(parts.endings.take(try Self.event(id, revision, token), at: 5))
    parts.endings.apply(through: 4, maximum: 10)
    #expect(parts.endings.count == 1 && parts.endings.deletions == 0, "the requests have not come so far")
    await withCheckedContinuation { continuation in
      parts.waiting = continuation
      parts.endings.apply(through: 5, maximum: 10)
    }
    if let failure = parts.failure { throw failure }
  }

  private static func event(_ id: NotificationID, _ revision: Revision, _ token: String) throws -> Event {
    var writer = EventWriter(source: "/carillon/carillon", worker: "fan-out", requestsTopic: "requests")
    var token = token
    token.withUTF8 { token in
      var facts = EventFacts(.delivered)
      (facts.id, facts.device, facts.revision) = (id, UnsafeRawBufferPointer(token), revision)
      facts.source = SourcePosition(partition: 0, offset: 0, timestamp: 1_700_000_000_000)
      writer.write(facts, at: 5)
    }
    var headers: [(name: String, value: String)] = []
    writer.forEachHeader { headers.append(($0.rawValue, String(decoding: $1, as: UTF8.self))) }
    return try writer.withValue { try Event(headers: headers, value: $0) }
  }

  func close() async {
    parts?.shards.close()
    parts = nil
  }
}
