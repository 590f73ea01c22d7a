import EventLoop
import Notifications
import Redis
import TestSupport

@testable import Store

/// A request for a device as the judge gets it, made of a few numbers.
struct Judged: Sendable {
  /// Why it comes again; nil for a record without an origin.
  var redrive: RequestEntry.Redrive?
  var device = "a"
  var id: UInt64
  var collapse = ""
  var timestamp: UInt64 = 1000
  var partition: UInt32 = 0
  var offset: UInt64
  var user: UInt64 = 0
  var isExpired = false
  var withdraws: UInt64?
  var removesAll = false
  var isOfPending = false
  var isBounded = false
  var wasKept = false

  var revision: Revision { Revision(timestamp: timestamp, partition: partition, offset: offset) }
  var source: SourcePosition {
    SourcePosition(partition: Int32(truncatingIfNeeded: partition), offset: Int64(offset), timestamp: Int64(timestamp))
  }
}

/// What the judge said, copied out.
enum Said: Equatable, Sendable {
  case stale(by: UInt64)
  case canceled(by: UInt64)
  case new(revision: Revision, superseded: UInt64?, presence: Bool)
  case again(revision: Revision, superseded: UInt64?, presence: Bool)
  case duplicate, wrongUser, unregistered, wrongApplication
  /// What Redis has of the device cannot be read; which text says so differs.
  case unreadable
  /// Something is pending for the device.
  case schedules
  /// The judge has said what it never says.
  case unknown
  /// Redis does not have the bucket.
  case lost
  case failed(StoreError.Code)

  init(_ verdict: Verdict?) {
    switch verdict {
    case .judged(let judgement, let application):
      let (other, isConnected) = (judgement.other?.id.number, application.presence == Said.presence)
      switch judgement.verdict {
      case .queued, .expired:
        self =
          application.isRepeat
          ? .again(revision: judgement.revision, superseded: other, presence: isConnected)
          : .new(revision: judgement.revision, superseded: other, presence: isConnected)
      case .canceled: self = other.map { .canceled(by: $0) } ?? .unknown
      case .collapsed: self = other.map { .stale(by: $0) } ?? .unknown
      case .duplicate: self = .duplicate
      case .wrongUser: self = .wrongUser
      case .unregistered: self = .unregistered
      case .wrongApplication: self = .wrongApplication
      default: self = .unknown
      }
    case .unreadable: self = .unreadable
    case .schedules: self = .schedules
    case nil: self = .unknown
    }
  }

  init(_ error: StoreError) { self = error.code == .bucketLost ? .lost : .failed(error.code) }

  /// Where the devices of these tests are connected.
  static let presence = Presence(partition: 3, generation: 7)
}

extension NotificationID {
  init(number: UInt64) {
    var bytes = [UInt8](repeating: 0, count: 8)
    withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
    // Sixteen bytes are an id.
    self = bytes.withUnsafeBytes { NotificationID(bytes: $0)! }
  }

  /// The number that it was made of.
  var number: UInt64 { withBytes { bytes in bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) } } }
}

/// A judge on a Redis of the test's own.
actor TestJudge: LoopActor {
  nonisolated let loop = EventLoop(name: "judge")
  private let buckets: Int
  private var redis: RedisConnection?
  var shards: Shards?
  /// How often a mailbox was said to have too many.
  private(set) var overflows = 0
  /// How often a removal of all was said to have found entries.
  private(set) var cancellations = 0
  private var waiting: (Judge, Collector)?
  static let application: UInt64 = 77

  private init(buckets: Int) { self.buckets = buckets }

  static func with<R: Sendable>(buckets: Int = 1, _ body: @escaping @Sendable (TestJudge) async throws -> R) async throws -> R {
    try await withRedis { server in
      let judge = TestJudge(buckets: buckets)
      let task = Task(executorPreference: judge.loop) {
        try await judge.connect(server.address)
        let result = try await body(judge)
        await judge.close()
        return result
      }
      let result = try await task.value
      await judge.loop.close()
      return result
    }
  }

  private func connect(_ address: RedisAddress) async throws {
    let redis = RedisConnection(on: loop, RedisConfiguration(address, callDeadlineMilliseconds: hangMilliseconds))
    self.redis = redis
    redis.start()
    try await redis.waitUntilUp(withinMilliseconds: hangMilliseconds)
    var configuration = StoreConfiguration(address, buckets: buckets)
    configuration.callDeadlineMilliseconds = hangMilliseconds
    let shards = Shards(on: loop, configuration, clientName: "test")
    self.shards = shards
    shards.start()
    try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    for bucket in 0..<buckets { _ = try await redis.command(["HSET", .text("k{\(bucket)}"), "v", 1]) }
  }

  private func close() {
    shards?.close()
    redis?.close()
  }

  @discardableResult
  func command(_ arguments: RedisArgument...) async throws -> RedisValue {
    guard let redis else { return .null }
    return try await redis.command(arguments)
  }

  /// The key of a device's hash, and of its mailbox.
  func device(_ token: String) -> RedisArgument { .text(shards?.keys.device(token) ?? "") }
  func mailboxKey(_ token: String) -> RedisArgument { .text(shards?.keys.mailbox(token) ?? "") }
  func bucket(_ token: String) -> Int { shards?.keys.bucket(of: token) ?? 0 }

  /// Registers a device as of a user since a time, connected or not.
  func register(_ token: String = "a", user: UInt64 = 0, since: UInt64 = 0, isConnected: Bool = false) async throws {
    let owner = Owner(user: user, since: since, application: TestJudge.application)
    try await command("HSET", device(token), "u", .bytes(owner.bytes))
    if isConnected { try await command("HSET", device(token), "p", .bytes(Said.presence.bytes)) }
  }

  /// Judges requests together, at most 64 of which are one call.
  func judge(
    _ requests: [Judged], now: Int64 = 1_000_000, application: UInt64 = TestJudge.application, maximum: Int = 100, connected: Int? = nil,
    ids: Int = 32,
    revisions: Int = 64
  ) async throws -> [Said] {
    guard let shards else { return [] }
    let judge = Judge(
      shards,
      Judge.Limits(
        lifetimeMilliseconds: 30 * 86_400_000, mailbox: MailboxBounds(maximum, connected: connected), ids: ids, revisions: revisions))
    let arena = Arena(capacity: 1 << 12)
    for (index, request) in requests.enumerated() {
      let token = request.device
      let span = arena.keep(Array(token.utf8).withUnsafeBytes { $0 })
      let entry = try Self.entry(request, application, in: arena)
      judge.add(JudgeRequest(tag: Int32(index), in: arena, token: span, entry), alone: false)
    }
    let verdicts = await withCheckedContinuation { continuation in
      let collector = Collector(requests.count) { continuation.resume(returning: ($0, $1, $2)) }
      judge.handler = collector
      // The judge knows its handler weakly.
      waiting = (judge, collector)
      judge.send(now: now)
    }
    waiting = nil
    overflows += verdicts.1
    cancellations += verdicts.2
    return verdicts.0
  }

  // MARK: Results

  private var results: Results?

  private func request(_ request: Judged, person: String? = nil) throws -> (Results, Results.Request) {
    guard let shards else { throw StoreError(.unavailable, "the judge is closed") }
    let results = results ?? Results(shards, on: loop)
    self.results = results
    let arena = Arena(capacity: 1 << 12)
    func keep(_ text: String) -> ArenaSpan { arena.keep(Array(text.utf8).withUnsafeBytes { $0 }) }
    let receiver: Receiver =
      if let person {
        .set(RecipientSet(user: keep(person), application: keep("com.example.shop")))
      } else {
        .device(keep(request.device))
      }
    return (results, Results.Request(in: arena, receiver, try Self.entry(request, TestJudge.application, in: arena)))
  }

  /// How a request stands, for its device or for a person.
  func look(_ judged: Judged, person: String? = nil) async throws -> Results.Standing {
    let (results, request) = try request(judged, person: person)
    return try await withCheckedContinuation { continuation in
      results.look(request, at: results.place(of: request)) { continuation.resume(returning: $0) }
    }.get()
  }

  /// Remembers a result, as this lane or as another one.
  func remember(_ bytes: [UInt8], of judged: Judged, as lane: String? = nil) throws {
    let (own, request) = try request(judged)
    guard let shards else { return }
    let results = lane == nil ? own : Results(shards, on: loop)
    results.remember(bytes, at: results.place(of: request))
  }

  private static func entry(_ request: Judged, _ application: UInt64, in arena: Arena) throws -> RequestEntry {
    let start = arena.bytes.count
    var headers: [(String, String)] = [
      ("target", "device:" + String(repeating: "ab", count: 32)), ("apns-topic", "com.example.shop"),
      ("apns-id", "\(NotificationID(number: request.id))"),
    ]
    if !request.collapse.isEmpty { headers.append(("apns-collapse-id", request.collapse)) }
    if request.removesAll { headers.append(("operation", "remove")) }
    if request.isOfPending {
      let region = #"{"identifier":"shop","latitude":52.5,"longitude":13.4,"radius":100}"#
      headers.append(("trigger", #"{"type":"location","region":\#(region)}"#))
    }
    let value = request.removesAll ? #"{"all":true}"# : #"{"aps":{"alert":"entry \#(request.id)"}}"#
    let texts = headers.map { Array($0.1.utf8) } + [Array(value.utf8), Array("requests".utf8)]
    let arenas = Arena(capacity: 512)
    let spans = texts.map { text in text.withUnsafeBytes { arenas.keep($0) } }
    try arenas.bytes.withUnsafeBytes { bytes in
      var taken = RequestHeaders()
      for (index, header) in headers.enumerated() { header.0.withCString { taken.take(name: $0, value: bytes[spans[index]]) } }
      let record = RequestRecord(
        key: bytes[ArenaSpan()], value: bytes[spans[headers.count]], headers: taken, topic: bytes[spans[headers.count + 1]],
        position: request.source)
      guard case .accepted(let view) = RequestView.read(record, limits: RequestLimits()) else {
        throw StoreError(.faulty, "the test's own request is none")
      }
      try DeliveryEntry(view).append(to: &arena.bytes)
    }
    let count = arena.bytes.count - start
    let collapse = Array(request.collapse.utf8).withUnsafeBytes { arena.keep($0) }
    let source = UInt32(truncatingIfNeeded: UInt64(request.partition) &* 100_003 &+ request.offset)
    var entry = RequestEntry(
      span: ArenaSpan(start: start, count: count), kind: .notify, collapseID: collapse, application: application, user: request.user,
      time: Int64(request.timestamp), withdraws: request.withdraws.map { NotificationID(number: $0) },
      id: request.id &* 0x9E37_79B9_7F4A_7C15, source: source, end: request.isExpired ? 0 : .max, revision: request.revision)
    entry.redrive = request.redrive
    (entry.removesAll, entry.isOfPending) = (request.removesAll, request.isOfPending)
    (entry.isBounded, entry.wasKept) = (request.isBounded, request.wasKept)
    return entry
  }

  /// Deletes what a full mailbox has too many, and answers the offsets of what is still too much, oldest first.
  func evict(_ requests: ArraySlice<Judged>, maximum: Int, connected: Int? = nil) async throws -> [UInt64] {
    guard let shards else { return [] }
    let mailboxes = Mailboxes(shards)
    return try await withCheckedContinuation { continuation in
      mailboxes.evict(requests.map(\.revision), of: "a", bounds: MailboxBounds(maximum, connected: connected)) { answer in
        continuation.resume(returning: answer.map(Self.offsets))
      }
    }.get()
  }

  /// The offsets of a page of the mailbox.
  func page(count: Int, skipping skipped: Int) async throws -> [UInt64] {
    guard let shards else { return [] }
    let mailboxes = Mailboxes(shards)
    return try await withCheckedContinuation { continuation in
      mailboxes.page(of: "a", count: count, skipping: skipped) { answer in continuation.resume(returning: answer.map(Self.offsets)) }
    }.get()
  }

  /// Deletes what a removal of all has canceled, and answers the offsets of what it cancels next, in order.
  func cancel(_ requests: [Judged], of token: String = "a") async throws -> [UInt64] {
    guard let shards else { return [] }
    let mailboxes = Mailboxes(shards)
    return try await withCheckedContinuation { continuation in
      mailboxes.cancel(requests.map(\.revision), of: token) { answer in
        continuation.resume(returning: answer.map { Self.offsets($0).sorted() })
      }
    }.get()
  }

  /// The id, the collapse id and the size of the payload of each readable entry that a removal of all cancels, as its answer tells them.
  func canceledHeads() async throws -> [String] {
    guard let shards else { return [] }
    let mailboxes = Mailboxes(shards)
    return try await withCheckedContinuation { continuation in
      mailboxes.cancel([], of: "a") { answer in
        continuation.resume(
          returning: answer.map { entries in
            var heads: [String] = []
            _ = entries.forEach { revision, entry, _ in
              heads.append("\(revision.offset) \(String(decoding: entry.collapseID, as: UTF8.self)) \(entry.payload.count)")
            }
            return heads.sorted()
          })
      }
    }.get()
  }

  /// Which removal cancels what the mailbox has.
  func canceling() async throws -> NotificationID? {
    guard let shards else { return nil }
    let mailboxes = Mailboxes(shards)
    return try await withCheckedContinuation { continuation in
      mailboxes.cancel([], of: "a") { answer in continuation.resume(returning: answer.map(\.floor?.id)) }
    }.get()
  }

  /// The floor of a device, as a page of its mailbox tells it.
  func floor(_ token: String = "a") async throws -> JournalReference? {
    guard let shards else { return nil }
    let mailboxes = Mailboxes(shards)
    return try await withCheckedContinuation { continuation in
      mailboxes.page(of: token, count: 1) { answer in continuation.resume(returning: answer.map(\.floor)) }
    }.get()
  }

  /// Registers a device by the script that applies registrations.
  func apply(_ owner: Owner?, offset: Int64, of token: String = "a") async throws {
    guard let redis, let shards else { return }
    let keys = shards.keys
    let stamp = RegistrationStamp(digest: 1, partition: 0, offset: offset)
    _ = try await redis.call(
      Registrations.script, keys: [.text(keys.device(token)), .text(keys.mailbox(token)), .text(keys.guardKey(ofDevice: token))],
      arguments: [.bytes(owner?.bytes ?? []), .bytes(stamp.bytes), 1_000_000, "", ""])
  }

  /// Deletes what a mailbox has of a request at a revision.
  func delete(_ revision: Revision, ofRequest id: UInt64, token: String = "a") async throws {
    guard let shards else { return }
    let mailboxes = Mailboxes(shards)
    let error = await withCheckedContinuation { continuation in
      mailboxes.delete(revision, ofRequest: NotificationID(number: id), of: token) { continuation.resume(returning: $0) }
    }
    if let error { throw error }
  }

  /// The offsets of entries; what cannot be read counts as the greatest.
  fileprivate static func offsets(_ entries: MailboxEntries) -> [UInt64] {
    var offsets: [UInt64] = []
    let unreadable = entries.forEach { revision, _, _ in offsets.append(revision.offset) }
    return unreadable.map { _ in .max } + offsets
  }

  /// The ids of the entries in a mailbox.
  func mailbox(_ token: String = "a") async throws -> Set<UInt64> {
    let entries = try await command("HVALS", mailboxKey(token)).array ?? []
    return Set(entries.compactMap { $0.bytes.map { $0[8..<16].reduce(0) { $0 << 8 | UInt64($1) } } })
  }
}

/// Has what the judge says of some requests, until all of it has come.
private final class Collector: JudgeHandler {
  private var said: [Said?]
  private var overflows = 0
  private var cancellations = 0
  private var left: Int
  private let then: ([Said], Int, Int) -> Void

  init(_ count: Int, _ then: @escaping ([Said], Int, Int) -> Void) {
    said = Array(repeating: nil, count: count)
    left = count
    self.then = then
  }

  func judged(_ requests: [JudgeRequest], _ answer: JudgeAnswer) {
    answer.forEachFinding { _, found in
      switch found {
      case .overflow: overflows += 1
      case .removalOfAll: cancellations += 1
      }
    }
    for (request, verdict) in zip(requests, answer.verdicts) { note(request, Said(verdict)) }
  }

  func notJudged(_ requests: [JudgeRequest], _ error: StoreError) {
    for request in requests { note(request, Said(error)) }
  }

  private func note(_ request: JudgeRequest, _ verdict: Said) {
    said[Int(request.tag)] = verdict
    left -= 1
    guard left == 0 else { return }
    then(said.map { $0 ?? .unknown }, overflows, cancellations)
  }
}
