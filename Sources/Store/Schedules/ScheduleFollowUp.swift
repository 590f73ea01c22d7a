public import Notifications
import Redis

/// What remains to be done about a schedule that has ended: to tell that it was evicted, and at last to forget it.
///
/// Redis has a list of these. A schedule leaves it only when Kafka has what follows from its state, so a worker may end at any moment.
extension Schedules {
  /// How a schedule stands that is to be followed up.
  public struct FollowUp: Sendable, Equatable {
    /// Its state. It may go on again, or be gone.
    public var state: State
    /// Since when it has ended, in milliseconds since 1970; nil where that is not known.
    public var since: Int64?
    /// Whether its target has more ended schedules than are remembered, and this is the oldest.
    public var isOldestOfTooMany: Bool
  }

  /// What becomes of a follow-up when Kafka has what follows.
  public enum Conclusion: Sendable, Equatable {
    /// Redis forgets the schedule.
    case forget
    /// Nothing is left to do.
    case done
    /// The schedule is followed up again at a time in milliseconds since 1970.
    case again(at: Int64)
  }

  /// What came of a conclusion.
  public enum Concluded: Sendable, Equatable {
    /// It is noted. Whether another schedule of the target is to be forgotten now.
    case noted(isNextDue: Bool)
    /// The schedule has changed meanwhile, and nothing was noted.
    case changed(FollowUp)
  }

  static let followUpScript = RedisScript(file: PackageResources.schedule_follow_up_lua)
  static let cancelScript = RedisScript(file: PackageResources.schedule_cancel_lua)

  /// Reads how a schedule stands that a partition of requests has among its follow-ups.
  public func followUp(
    _ key: ScheduleKey, of partition: UInt32, now: Int64, _ then: @escaping (Result<FollowUp, StoreError>) -> Void
  ) {
    beginFollowUp(key, partition, now: now)
    sendFollowUp(key) { concluded in
      then(
        concluded.flatMap { concluded in
          guard case .changed(let found) = concluded else { return .failure(Self.wrongFollowUp) }
          return .success(found)
        })
    }
  }

  /// Concludes a follow-up, where the schedule still has this state.
  public func conclude(
    _ conclusion: Conclusion, _ key: ScheduleKey, in state: State, of partition: UInt32, now: Int64,
    _ then: @escaping (Result<Concluded, StoreError>) -> Void
  ) {
    beginFollowUp(key, partition, now: now)
    calls.command.append(state.head)
    calls.command.append(conclusion == .forget ? "forget" : "")
    if case .again(let time) = conclusion { calls.command.append(time) } else { calls.command.append("") }
    sendFollowUp(key, then)
  }

  private func beginFollowUp(_ key: ScheduleKey, _ partition: UInt32, now: Int64) {
    let bucket = bucket(of: key)
    calls.command.begin(Self.followUpScript, keys: 4)
    calls.command.append(shards.keys.schedules(.all, of: key))
    calls.command.append(shards.keys.schedules(.ended, of: key))
    calls.command.append(shards.keys.followUps(bucket, partition: partition))
    calls.command.append(shards.keys.guardKey(bucket))
    calls.command.append(Array(key.identifier.utf8))
    calls.command.append(key.bytes)
    calls.command.append(limits.endedOfTarget)
    calls.command.append(now)
  }

  private func sendFollowUp(_ key: ScheduleKey, _ then: @escaping (Result<Concluded, StoreError>) -> Void) {
    calls.send(over: shards.shard(of: bucket(of: key))) { [keys = shards.keys] answer in
      then(answer.flatMap { Self.concluded($0) }.mapError { $0.about(keys.schedules(.all, of: key)) })
    }
  }

  private static func concluded(_ reply: RedisReplyView) -> Result<Concluded, StoreError> {
    switch reply[0]?.integer {
    case 1: return .success(.noted(isNextDue: reply[1]?.integer == 1))
    case 0:
      let state = State(reply[1]?.bytes.map(Array.init) ?? [], floor: reply[4]?.bytes.map(Array.init) ?? [])
      let since = reply[2]?.bytes.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
      return .success(.changed(FollowUp(state: state, since: since, isOldestOfTooMany: reply[3]?.integer == 1)))
    default: return .failure(wrongFollowUp)
    }
  }

  private static var wrongFollowUp: StoreError {
    StoreError(.faulty, "the script that follows up a schedule has answered what it never answers")
  }
}

/// The cancel of all that is pending of a target for an application.
extension Schedules {
  /// Notes a request that cancels all, and lists the schedules of the target: those that are pending, and those that have ended lately.
  ///
  /// From then on no older request schedules anything, and no older schedule fires.
  ///
  /// - Parameter scope: any schedule of the target for the application.
  public func cancelAll(
    in scope: ScheduleKey, _ request: JournalReference, _ then: @escaping (Result<[ScheduleKey], StoreError>) -> Void
  ) {
    let bucket = bucket(of: scope)
    calls.command.begin(Self.cancelScript, keys: 3)
    calls.command.append(shards.keys.schedules(.all, of: scope))
    calls.command.append(shards.keys.schedules(.pending, of: scope))
    calls.command.append(shards.keys.guardKey(bucket))
    calls.command.append(request.revision.withBytes { Array($0) } + request.id.withBytes { Array($0) })
    calls.command.append(2 * limits.lifetimeMilliseconds)
    calls.send(over: shards.shard(of: bucket)) { [keys = shards.keys] answer in
      then(
        answer.map { reply in
          guard let names = reply[0] else { return [] }
          return (0..<names.count).compactMap { place in
            names[place]?.bytes.flatMap { ScheduleKey(application: scope.application, target: scope.target, identifier: Name($0)) }
          }
        }.mapError { $0.about(keys.schedules(.all, of: scope)) })
    }
  }

  /// Reads a floor; nil where there is none, or where it cannot be read.
  static func floor(_ bytes: UnsafeRawBufferPointer) -> JournalReference? {
    guard bytes.count == Revision.byteCount + NotificationID.byteCount,
      let revision = Revision(bytes: UnsafeRawBufferPointer(rebasing: bytes[..<Revision.byteCount])),
      let id = NotificationID(bytes: UnsafeRawBufferPointer(rebasing: bytes[Revision.byteCount...]))
    else { return nil }
    return JournalReference(revision: revision, id: id)
  }
}
