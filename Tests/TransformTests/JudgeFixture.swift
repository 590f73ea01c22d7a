import EventLoop
import Notifications
import Redis
import TestSupport
import Worker

@testable import Transform

/// A request for a device as the judge gets it, made of a few numbers.
struct Judged: Sendable {
  var device = "a"
  var id: UInt64
  var collapse = ""
  var timestamp: UInt64 = 1000
  var partition: UInt32 = 0
  var offset: UInt64
  var user: UInt64 = 0
  var isExpired = false
  var withdraws: UInt64?

  /// The entry begins with the apns-id.
  var entry: [UInt8] { idBytes + Array("entry \(id)".utf8) }
  var idBytes: [UInt8] { [UInt8](repeating: 0, count: 8) + withUnsafeBytes(of: id.bigEndian, Array.init) }
  var revision: Revision { Revision(timestamp: timestamp, partition: partition, offset: offset) }
}

/// What the judge said, copied out.
enum Said: Equatable, Sendable {
  case stale(by: UInt64)
  case new(revision: Revision, displaced: UInt64?, presence: Bool)
  case again(revision: Revision, displaced: UInt64?, presence: Bool)
  case duplicate, foreign, unregistered, wrongApplication, unreadable
  /// Not of a request: Redis does not have the bucket.
  case lost

  init(_ verdict: RedisValue) {
    let parts = verdict.array ?? []
    func bytes(_ index: Int) -> [UInt8] { index < parts.count ? parts[index].bytes ?? [] : [] }
    func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
    let revision = bytes(2).withUnsafeBytes { Revision(bytes: $0) }
    let displaced: UInt64? = bytes(3).count == 36 ? number(bytes(3)[28...]) : nil
    switch parts.first?.integer {
    case 0: self = .stale(by: number(bytes(3)[8...]))
    case 1: self = revision.map { .new(revision: $0, displaced: displaced, presence: bytes(1).count == 12) } ?? .unreadable
    case 2: self = revision.map { .again(revision: $0, displaced: displaced, presence: bytes(1).count == 12) } ?? .unreadable
    case 3: self = .duplicate
    case 4: self = .foreign
    case 5: self = .unregistered
    case 6: self = .wrongApplication
    default: self = verdict.integer == -2 ? .lost : .unreadable
    }
  }

  /// Whether it says that the request was applied, now or before.
  var isApplied: Bool {
    switch self {
    case .new, .again: true
    default: false
    }
  }
}

/// Calls the judge on a server of the test's own.
actor Judge {
  nonisolated let loop = EventLoop(name: "judge")
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private var redis: RedisConnection?
  /// The offsets of what full mailboxes were said to have too many, one list for each answer that said so.
  private(set) var surplus: [[UInt64]] = []
  static let application: UInt64 = 77

  static func with<R: Sendable>(_ body: @escaping @Sendable (Judge) async throws -> R) async throws -> R {
    try await withRedis { server in
      let judge = Judge()
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
    let redis = RedisConnection(on: loop, RedisConfiguration(address, scripts: [JudgeScript.script, JudgeScript.evict]))
    self.redis = redis
    redis.start()
    try await redis.waitUntilUp(withinMilliseconds: 5000)
    _ = try await redis.command(["HSET", "k{0}", "v", 1])
  }

  private func close() { redis?.close() }

  func command(_ arguments: RedisArgument...) async throws -> RedisValue {
    guard let redis else { return .null }
    return try await redis.command(arguments)
  }

  /// Registers a device as of a user since a time, connected or not.
  func register(_ device: String = "a", user: UInt64 = 0, since: UInt64 = 0, isConnected: Bool = false) async throws {
    let owner = [user, since, Judge.application].flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) }
    _ = try await command("HSET", "d{0}\(device)", "u", .bytes(owner))
    if isConnected { _ = try await command("HSET", "d{0}\(device)", "p", .bytes([UInt8](repeating: 1, count: 12))) }
  }

  /// Judges requests in one call.
  func judge(
    _ requests: [Judged], now: Int64 = 1_000_000, application: UInt64 = Judge.application, bound: Int64 = 100, ids: Int64 = 32,
    revisions: Int64 = 64
  ) async throws -> [Said] {
    guard let redis else { return [] }
    var keys: [RedisArgument] = []
    var arguments: [RedisArgument] = [.integer(now), .integer(30 * 86_400_000), .integer(bound), .integer(ids), .integer(revisions)]
    func bytes(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.bigEndian, Array.init) }
    for request in requests {
      keys += ["d{0}\(request.device)", "m{0}\(request.device)"]
      let source = withUnsafeBytes(
        of: UInt32(truncatingIfNeeded: request.partition &* 100_003 &+ UInt32(request.offset)).bigEndian, Array.init)
      let terms =
        [request.isExpired ? 1 : 0] + bytes(application) + bytes(request.user) + bytes(request.timestamp)
        + (request.withdraws.map { bytes(0) + bytes($0) } ?? [])
      arguments += [
        .bytes(bytes(request.id &* 0x9E37_79B9_7F4A_7C15) + source), .bytes(request.revision.withBytes { Array($0) }),
        .text(request.collapse.isEmpty ? "" : "c" + request.collapse), .bytes(request.entry), .bytes(terms),
      ]
    }
    keys.append("k{0}")
    let answers = try await redis.call(JudgeScript.script, keys: keys, arguments: arguments).array ?? []
    for answer in answers {
      if let parts = answer.array, parts.count > 4 { surplus.append(Self.offsets(parts[4])) }
    }
    return answers.map { Said($0) }
  }

  /// Deletes what a full mailbox has too many, and answers the offsets of what is still too much.
  func evict(_ revisions: [RedisArgument], bound: Int64) async throws -> [UInt64] {
    guard let redis else { return [] }
    let left = try await redis.call(JudgeScript.evict, keys: ["d{0}a", "m{0}a"], arguments: [.integer(bound)] + revisions)
    return Self.offsets(left)
  }

  /// The offsets of a list of revisions, each with its entry; what is no revision counts as the greatest.
  private static func offsets(_ entries: RedisValue) -> [UInt64] {
    let parts = entries.array ?? []
    return stride(from: 0, to: parts.count, by: 2).compactMap { place in
      parts[place].bytes.map { $0.count == 20 ? $0[12...].reduce(0) { $0 << 8 | UInt64($1) } : .max }
    }
  }

  /// The ids of the entries in a mailbox.
  func mailbox(_ device: String = "a") async throws -> Set<UInt64> {
    let entries = try await command("HVALS", "m{0}\(device)").array ?? []
    return Set(entries.compactMap { $0.bytes.map { $0[8..<16].reduce(0) { $0 << 8 | UInt64($1) } } })
  }
}
