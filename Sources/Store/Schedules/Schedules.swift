public import Notifications
import Redis

/// The schedules in Redis: their states and their due times.
///
/// A caller reads the state of a schedule, decides, and replaces that state. If another state stands by then, Redis writes nothing and the
/// caller decides again.
public final class Schedules {
  /// The maximum numbers of schedules that Redis keeps.
  public struct Limits: Sendable {
    /// The maximum number of pending schedules of one application and target.
    var pendingOfTarget: Int
    /// The maximum number of ended schedules of one application and target.
    var endedOfTarget: Int
    /// The number of due times of one partition in one bucket beyond which only applications have room that hold less than an equal share
    /// of it. A sixteenth of it is for targets that no device is registered for.
    var dueTimesOfPartition: Int
    /// How long Redis keeps an ended schedule, in milliseconds.
    public var lifetimeMilliseconds: Int64

    /// Creates limits from their parts.
    public init(pendingOfTarget: Int = 64, endedOfTarget: Int = 64, dueTimesOfPartition: Int, lifetimeMilliseconds: Int64) {
      (self.pendingOfTarget, self.endedOfTarget) = (pendingOfTarget, endedOfTarget)
      (self.dueTimesOfPartition, self.lifetimeMilliseconds) = (dueTimesOfPartition, lifetimeMilliseconds)
    }
  }

  /// The state of a schedule that was read. A write expects to find it.
  public struct State: Sendable, Equatable {
    /// The record; nil if there is none, or if it cannot be read.
    public let record: ScheduleRecord?
    /// The version of a state that a newer program has written; nil for any other state. Nothing replaces it.
    public let newerVersion: UInt8?
    /// Whether Redis has a state that cannot be read. The next write replaces it.
    public var isUnreadable: Bool { record == nil && !head.isEmpty && newerVersion == nil }
    /// Whether Redis has no state of the schedule.
    public var isMissing: Bool { head.isEmpty }
    /// The newest request that canceled all schedules of the target for the application.
    public var floor: JournalReference? { floorBytes.withUnsafeBytes { JournalReference($0) } }
    let head: [UInt8]
    fileprivate let floorBytes: [UInt8]

    /// The state of a missing schedule.
    public static let none = State([], floor: [])

    init(_ bytes: some Collection<UInt8>, floor: some Collection<UInt8>) {
      let bytes = Array(bytes)
      record = bytes.withUnsafeBytes { ScheduleRecord($0) }
      newerVersion = record == nil ? bytes.withUnsafeBytes { ScheduleRecord.newerVersion(of: $0) } : nil
      (head, floorBytes) = (Array(bytes.prefix(ScheduleRecord.headBytes)), Array(floor))
    }

    /// The partition whose due times contain a schedule that a newer program has written. The form of the head never changes.
    var newerPartition: UInt32? {
      guard newerVersion != nil, head.count == ScheduleRecord.headBytes else { return nil }
      let partition = head[14..<18].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      return Revision(timestamp: 0, partition: partition, offset: 0).sourcePartition
    }

    /// The partition whose due times contain the schedule; nil if none does.
    fileprivate var partition: UInt32? { record?.newest.revision.sourcePartition }
  }

  /// The result of a write.
  public enum Written: Sendable, Equatable {
    /// The state stands. `oldest` is the schedule to evict, if the target has too many pending ones. `isDue` tells that the follow-up of an
    /// ended schedule is due now.
    case written(oldest: Schedule?, isDue: Bool = false)
    /// Another state or floor stands, and Redis wrote nothing.
    case changed(State)
    /// There is no room for a further due time of the partition in the bucket, and Redis wrote nothing. `isKnown` tells whether a device is
    /// registered for the target and the application.
    case full(isKnown: Bool)
  }

  /// A schedule and its state.
  public struct Schedule: Sendable, Equatable {
    /// The name of the schedule.
    public var key: ScheduleKey
    /// The state of the schedule.
    public var state: State
  }

  /// The due schedules and follow-ups of a place.
  public struct Due: Sendable, Equatable {
    /// The due schedules, earliest first.
    public var schedules: [ScheduleKey] = []
    /// Members of the due times that do not name a schedule. Another program wrote them.
    public var unreadable: [[UInt8]] = []
    /// Whether due times are missing, because the key held other data. `restoreDueTimes` writes them again.
    public var areMissing = false
    /// Whether the due times may be those of another version of the time zone database. `note(zoneData:)` ends this.
    public var areOutdated = false
    /// Ended schedules whose follow-up is due.
    public var followUps: [ScheduleKey] = []
    /// Members of the follow-ups that do not name a schedule.
    public var unreadableFollowUps: [[UInt8]] = []
    /// Whether there may be more of them than the answer has.
    public var isFull = false
    /// Whether there may be more follow-ups than the answer has.
    public var hasMoreFollowUps = false
    /// The time of the next schedule or follow-up; nil if there is none.
    public var next: Int64?
  }

  let shards: Shards
  /// The maximum numbers of schedules that Redis keeps.
  public let limits: Limits
  let calls = Calls()

  /// Creates the calls to these servers.
  public init(_ shards: Shards, _ limits: Limits) { (self.shards, self.limits) = (shards, limits) }

  /// Returns the bucket of a schedule, which is that of its target.
  public func bucket(of key: ScheduleKey) -> Int { shards.keys.bucket(ofTarget: key.target) }

  /// Returns the Redis key of the target's schedules, for messages.
  public func name(of key: ScheduleKey) -> String { shards.keys.schedules(.all, of: key) }

  /// Returns the Redis key of a partition's due times in a bucket, for messages.
  public func nameOfDueTimes(_ bucket: Int, _ partition: UInt32) -> String { shards.keys.dueTimes(bucket, partition: partition) }

  /// The error of a state that a newer program has written; nil for any other state.
  public func newer(_ state: State, of key: ScheduleKey) -> StoreError? {
    state.newerVersion.map { .newer(.schedule, $0, at: "\(name(of: key)) '\(key.identifier)'") }
  }

  // MARK: One schedule

  static let readScript = RedisScript(file: "schedule-read")
  static let writeScript = RedisScript(file: "schedule-write")

  /// Reads the state of a schedule.
  public func read(_ key: ScheduleKey, _ then: @escaping (Result<State, StoreError>) -> Void) {
    calls.command.begin(Self.readScript, keys: [name(of: key), shards.keys.guardKey(bucket(of: key))])
    calls.command.append(Array(key.identifier.utf8))
    send(about: key, then) { .success(State($0[0]?.bytes.map(Array.init) ?? [], floor: $0[1]?.bytes.map(Array.init) ?? [])) }
  }

  /// Sends the call in the bucket of a schedule. An error names a key of its target.
  func send<Value>(
    about key: ScheduleKey, naming kind: Keys.ScheduleSet = .all, _ then: @escaping (Result<Value, StoreError>) -> Void,
    reading read: @escaping (RedisReplyView) -> Result<Value, StoreError>
  ) {
    calls.send(over: shards.shard(of: bucket(of: key))) { [keys = shards.keys] answer in
      then(answer.flatMap(read).mapError { $0.about(keys.schedules(kind, of: key)) })
    }
  }

  static let settleScript = RedisScript(file: "schedule-settle")

  /// Notes that Kafka has this state and the events about its end.
  ///
  /// Redis forgets that the target has pending schedules when none is pending and all ends are settled.
  public func settle(_ record: ScheduleRecord, of key: ScheduleKey, _ then: @escaping (Result<Void, StoreError>) -> Void) {
    var buffer = ByteBuffer()
    do throws(RecordCodingError) { try record.append(to: &buffer) } catch { return then(.failure(StoreError(.faulty, "\(error)"))) }
    let keys = shards.keys
    calls.command.begin(
      Self.settleScript,
      keys: sets(of: key) + [keys.applicationsWithSchedules(ofTarget: key.target), keys.guardKey(bucket(of: key))])
    calls.command.append(Array(key.identifier.utf8))
    calls.command.append(buffer.withUnsafeBytes { Array($0.prefix(ScheduleRecord.headBytes)) })
    calls.command.append(Array(key.application.utf8))
    send(about: key, then) { _ in .success(()) }
  }

  private func sets(of key: ScheduleKey) -> [String] { Keys.ScheduleSet.allCases.map { shards.keys.schedules($0, of: key) } }

  static let removeScript = RedisScript(file: "schedule-remove")

  /// Removes the due time of a schedule that is not pending or not readable.
  public func removeDueTime(of key: ScheduleKey, _ partition: UInt32) {
    let bucket = bucket(of: key)
    calls.command.begin(Self.removeScript, keys: [shards.keys.dueTimes(bucket, partition: partition)])
    calls.command.append(key.bytes)
    calls.command.append(Array(key.application.utf8))
    calls.send(over: shards.shard(of: bucket)) { _ in }
  }

  /// Replaces the state of a schedule that was read by a new one.
  ///
  /// - Parameters:
  ///   - isSettled: whether Kafka has all records that follow from the state.
  ///   - now: milliseconds since 1970.
  ///   - place: the place of the request's record, whatever origin it names. A record without room has none when it is read again.
  public func write(
    _ record: ScheduleRecord, of key: ScheduleKey, replacing former: State, isSettled: Bool = false, now: Int64, place: Revision? = nil,
    _ then: @escaping (Result<Written, StoreError>) -> Void
  ) {
    var buffer = ByteBuffer()
    do throws(RecordCodingError) { try record.append(to: &buffer) } catch { return then(.failure(StoreError(.faulty, "\(error)"))) }
    let bucket = bucket(of: key)
    let partition = record.newest.revision.sourcePartition
    let keys = shards.keys
    calls.command.begin(
      Self.writeScript,
      keys: sets(of: key) + [
        keys.dueTimes(bucket, partition: former.partition ?? partition), keys.dueTimes(bucket, partition: partition),
        keys.followUps(bucket, partition: partition), keys.applicationsWithSchedules(ofTarget: key.target), keys.guardKey(bucket),
        keys.registrations(ofTarget: key.target, application: key.application),
      ])
    calls.command.append(Array(key.identifier.utf8))
    calls.command.append(former.head)
    buffer.withUnsafeBytes { calls.command.append($0) }
    calls.command.append(all: [
      record.pending?.earliest.map { .integer($0.due) } ?? "", .bytes(key.bytes),
      .integer(Timestamp.bounded(Int64(clamping: record.newest.revision.timestamp))), .integer(now), .integer(limits.lifetimeMilliseconds),
      .integer(Int64(limits.pendingOfTarget)), .integer(Int64(limits.endedOfTarget)), .integer(Int64(limits.dueTimesOfPartition)),
      .bytes(Array(key.application.utf8)), .bytes(former.floorBytes),
      .integer(record.phase == .ended(.evicting) ? now : now + limits.lifetimeMilliseconds),
      .text(isSettled || !record.isPublished ? "\(now)" : "\(now).5"),
      .bytes(withUnsafeBytes(of: NameHash.hash(key.application).bigEndian, Array.init)),
      place.map { .bytes($0.withBytes { Array($0) }) } ?? "",
    ])
    send(about: key, then) { Self.written($0, key, floor: former.floorBytes) }
  }

  private static func written(_ reply: RedisReplyView, _ key: ScheduleKey, floor: [UInt8]) -> Result<Written, StoreError> {
    switch reply[0]?.integer {
    case 0:
      return .success(.changed(State(reply[1]?.bytes.map(Array.init) ?? [], floor: reply[2]?.bytes.map(Array.init) ?? [])))
    case 1:
      let isDue = reply[1]?.integer == 1
      guard let identifier = reply[2]?.bytes, let state = reply[3]?.bytes else { return .success(.written(oldest: nil, isDue: isDue)) }
      let oldest = ScheduleKey(application: key.application, target: key.target, identifier: Name(identifier))
      return .success(.written(oldest: oldest.map { Schedule(key: $0, state: State(Array(state), floor: floor)) }, isDue: isDue))
    case 2: return .success(.full(isKnown: reply[1]?.integer == 1))
    default: return .failure(StoreError(.faulty, "the script that writes a schedule has answered what it never answers"))
    }
  }

  static let pendingScript = RedisScript(file: "schedule-pending")

  /// Reads the pending schedules of a target for an application. Most targets have none.
  public func pending(application: Name, target: Name, _ then: @escaping (Result<[Schedule], StoreError>) -> Void) {
    guard let any = ScheduleKey(application: application, target: target, identifier: "-") else { return then(.success([])) }
    calls.command.begin(
      Self.pendingScript, keys: [name(of: any), shards.keys.schedules(.pending, of: any), shards.keys.guardKey(bucket(of: any))])
    send(about: any, naming: .pending, then) { reply in
      let floor = reply[0]?.bytes.map(Array.init) ?? []
      let schedules = stride(from: 1, to: reply.count - 1, by: 2).compactMap { place -> Schedule? in
        guard let identifier = reply[place]?.bytes, let state = reply[place + 1]?.bytes else { return nil }
        return ScheduleKey(application: application, target: target, identifier: Name(identifier)).map {
          Schedule(key: $0, state: State(Array(state), floor: floor))
        }
      }
      return .success(schedules)
    }
  }

  // MARK: Due schedules

  static let dueScript = RedisScript(file: "schedule-due")

  /// Reads the due schedules of a partition in a bucket, earliest first.
  ///
  /// - Parameters:
  ///   - moment: milliseconds since 1970.
  ///   - count: the maximum number of schedules, and of follow-ups.
  ///   - version: the caller's version of the time zone database.
  public func due(
    in bucket: Int, of partition: UInt32, until moment: Int64, count: Int, zoneData version: String,
    _ then: @escaping (Result<Due, StoreError>) -> Void
  ) {
    let keys = shards.keys
    calls.command.begin(
      Self.dueScript,
      keys: [
        keys.dueTimes(bucket, partition: partition), keys.followUps(bucket, partition: partition), keys.zoneData(bucket),
        keys.guardKey(bucket),
      ])
    calls.command.append(all: [.integer(moment), .integer(Int64(count)), "\(partition)", .text(version)])
    calls.send(over: shards.shard(of: bucket)) { [shards] answer in
      if case .success(let reply) = answer, let mended = reply[4] {
        for number in 0..<mended.count { if let key = mended[number]?.text { shards.onMended?(key) } }
      }
      then(answer.flatMap { Due.read($0, count) }.mapError { $0.about(shards.keys.dueTimes(bucket, partition: partition)) })
    }
  }

  /// Removes unreadable members of the due times or follow-ups. They would otherwise stay first in the list.
  public func remove(
    unreadable names: [[UInt8]], amongFollowUps: Bool = false, in bucket: Int, of partition: UInt32,
    _ then: @escaping (StoreError?) -> Void
  ) {
    guard !names.isEmpty else { return then(nil) }
    calls.command.begin("ZREM")
    let keys = shards.keys
    calls.command.append(amongFollowUps ? keys.followUps(bucket, partition: partition) : keys.dueTimes(bucket, partition: partition))
    for name in names { calls.command.append(name) }
    calls.sendWrite(over: shards.shard(of: bucket), then)
  }
}

extension Schedules.Due {
  /// - Parameter count: how many schedules, and follow-ups, the answer has at most.
  fileprivate static func read(_ reply: RedisReplyView, _ count: Int) -> Result<Schedules.Due, StoreError> {
    guard let found = reply[0], found.kind == .array, found.count.isMultiple(of: 2), let next = reply[1]?.bytes,
      let ended = reply[2], ended.kind == .array, let nextFollowUp = reply[3]?.bytes
    else {
      return .failure(StoreError(.faulty, "the script that reads what is due has answered what it never answers"))
    }
    var due = Schedules.Due()
    let names = stride(from: 0, to: found.count, by: 2).compactMap { found[$0]?.bytes }
    (due.schedules, due.unreadable) = keys(names.filter { !$0.isEmpty })
    due.areMissing = names.contains { $0.isEmpty }
    (due.followUps, due.unreadableFollowUps) = keys((0..<ended.count).compactMap { ended[$0]?.bytes })
    (due.isFull, due.hasMoreFollowUps) = (names.count >= count, ended.count >= count)
    let times = [next.isEmpty ? nil : milliseconds(reply[1]) ?? .max, nextFollowUp.isEmpty ? nil : milliseconds(reply[3]) ?? .max]
    due.areOutdated = reply[5]?.integer == 1
    due.next = times.compactMap { $0 }.min()
    return .success(due)
  }

  /// Reads names; answers apart those that no schedule has.
  private static func keys(_ names: [UnsafeRawBufferPointer]) -> ([ScheduleKey], unreadable: [[UInt8]]) {
    (names.compactMap { ScheduleKey($0) }, names.filter { ScheduleKey($0) == nil }.map { Array($0) })
  }

  /// Reads a score. The workers write whole numbers only.
  private static func milliseconds(_ score: RedisReplyView?) -> Int64? {
    score?.bytes.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
  }
}
