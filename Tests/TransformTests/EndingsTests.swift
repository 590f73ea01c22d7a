import EventLoop
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What events say has ended, taken out of a mailbox where the journal did not tell which of several records the device had.
@Suite struct EndingsTests {
  @Test func `what a device has taken goes under every revision, where its apns-id came more than once`() async throws {
    try await TransformFixture.with({ $0.mailboxBound = 1_000 }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 1)])
      try await lane.register(tokens, for: "ada")
      let id = NotificationID(high: 7, low: 7)
      // More than one page of a mailbox before the entry.
      try await lane.request("device:\(tokens[0])", count: 300)
      try await lane.request("device:\(tokens[0])", payload: #"{"aps":{"alert":"first"}}"#, id: "\(id)")
      await lane.eventually("all of it waits") { try await lane.waiting(tokens[0]) == 301 }
      let endings = EndingsLane(lane.redis.address)
      var left: [Int] = []
      for (type, isRepeat) in [(Outcome.delivered, false), (.evicted, true), (.delivered, true)] {
        try await endings.end(type, id, at: tokens[0], isRepeat: isRepeat)
        left.append(try await lane.waiting(tokens[0]))
      }
      await endings.close()
      await endings.loop.close()
      #expect(left == [301, 301, 300])
    }
  }

  @Test func `with too many repeated ids each counts as one`() {
    var repeats = RepeatedIDs(limit: 3)
    repeats.insert(1, 1)
    repeats.insert(1, 2)
    #expect(repeats.contains(1, 1) && repeats.contains(1, 2) && !repeats.contains(2, 1))
    repeats.insert(2, 2)
    #expect(repeats.contains(2, 1))
  }
}

/// Endings on a loop of their own.
private actor EndingsLane: LoopActor {
  nonisolated let loop = EventLoop(name: "endings")
  private let address: RedisAddress
  private var parts: Parts?

  private final class Parts {
    let shards: Shards
    let verdicts = JournaledVerdicts()
    let endings: Endings
    var waiting: CheckedContinuation<Void, Never>?
    var failure: StoreError?

    init(on loop: EventLoop, _ address: RedisAddress) {
      var configuration = StoreConfiguration(address, buckets: TransformFixture.buckets)
      configuration.callDeadlineMilliseconds = 60_000
      shards = Shards(on: loop, configuration, clientName: "test")
      endings = Endings(Mailboxes(shards), verdicts)
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

  func end(_ type: Outcome, _ id: NotificationID, at token: String, isRepeat: Bool) async throws {
    let parts = parts ?? Parts(on: loop, address)
    if self.parts == nil {
      self.parts = parts
      parts.shards.start()
      try await parts.shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    }
    if isRepeat { parts.verdicts.foundRepeat(of: id.windowHash, at: token) }
    #expect(parts.endings.take(try Self.event(type, id, token), at: 5))
    parts.endings.apply(through: 4, maximum: 10)
    #expect(parts.endings.count == 1 && parts.endings.deletions == 0, "the requests have not come so far")
    await withCheckedContinuation { continuation in
      parts.waiting = continuation
      parts.endings.apply(through: 5, maximum: 10)
    }
    if let failure = parts.failure { throw failure }
  }

  private static func event(_ type: Outcome, _ id: NotificationID, _ token: String) throws -> Event {
    var writer = EventWriter(source: "/carillon/carillon", worker: "fan-out", requestsTopic: "requests")
    var token = token
    token.withUTF8 { token in
      var facts = EventFacts(type)
      (facts.id, facts.device) = (id, UnsafeRawBufferPointer(token))
      // Of another record than the one that the mailbox has.
      facts.source = SourcePosition(partition: 3, offset: 42, timestamp: 1_700_000_000_000)
      facts.revision = Revision(timestamp: 1_700_000_000_000, partition: 3, offset: 42)
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
