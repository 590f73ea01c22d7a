public import Notifications
import Redis

/// The follow-up of an ended schedule: emitting its eviction, and in the end forgetting it.
///
/// Redis lists the follow-ups. A schedule leaves the list only when Kafka has the records that follow from its state. So a worker may die
/// at any moment.
extension Schedules {
  /// A schedule that has a follow-up.
  public struct FollowUp: Sendable, Equatable {
    /// The state. The schedule may be pending again, or missing.
    public var state: State
    /// When the schedule ended, in milliseconds since 1970; nil if that is not known.
    public var since: Int64?
    /// Whether the target has too many ended schedules, and this is the oldest.
    public var isOldestOfTooMany: Bool
  }

  /// What Redis does with a follow-up when Kafka has its records.
  public enum Conclusion: Sendable, Equatable {
    /// Forget the schedule.
    case forget
    /// Remove the follow-up.
    case done
    /// Follow up the schedule again at a time in milliseconds since 1970.
    case again(at: Int64)
  }

  /// The answer to a conclusion.
  public enum Concluded: Sendable, Equatable {
    /// Redis has noted it. `isNextDue` tells whether another schedule of the target is to be forgotten now.
    case noted(isNextDue: Bool)
    /// The schedule has changed meanwhile, and Redis noted nothing.
    case changed(FollowUp)
  }

  static let followUpScript = RedisScript(file: "schedule-follow-up")
  static let cancelScript = RedisScript(file: "schedule-cancel")

  /// Reads the state of a schedule that is among the follow-ups of a partition.
  public func followUp(
    _ key: ScheduleKey, of partition: UInt32, now: Int64, _ then: @escaping (Result<FollowUp, StoreError>) -> Void
  ) {
    beginFollowUp(key, partition, now: now)
    send(about: key, then) { reply in
      Self.concluded(reply).flatMap { concluded in
        guard case .changed(let found) = concluded else { return .failure(Self.wrongFollowUp) }
        return .success(found)
      }
    }
  }

  /// Concludes a follow-up if the schedule still has this state.
  public func conclude(
    _ conclusion: Conclusion, _ key: ScheduleKey, in state: State, of partition: UInt32, now: Int64,
    _ then: @escaping (Result<Concluded, StoreError>) -> Void
  ) {
    beginFollowUp(key, partition, now: now)
    calls.command.append(state.head)
    calls.command.append(conclusion == .forget ? "forget" : "")
    if case .again(let time) = conclusion { calls.command.append(time) } else { calls.command.append("") }
    send(about: key, then) { Self.concluded($0) }
  }

  private func beginFollowUp(_ key: ScheduleKey, _ partition: UInt32, now: Int64) {
    let bucket = bucket(of: key)
    let keys = shards.keys
    calls.command.begin(
      Self.followUpScript,
      keys: [name(of: key), keys.schedules(.ended, of: key), keys.followUps(bucket, partition: partition), keys.guardKey(bucket)])
    calls.command.append(Array(key.identifier.utf8))
    calls.command.append(key.bytes)
    calls.command.append(limits.endedOfTarget)
    calls.command.append(now)
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

/// The cancel of all pending schedules of a target for an application.
extension Schedules {
  /// Notes a request that cancels all, and lists the target's schedules.
  ///
  /// The list has the pending schedules, and those that ended lately. From then on no older request schedules anything, and no older
  /// schedule fires.
  ///
  /// - Parameter scope: any schedule of the target for the application.
  public func cancelAll(
    in scope: ScheduleKey, _ request: JournalReference, _ then: @escaping (Result<[ScheduleKey], StoreError>) -> Void
  ) {
    let keys = shards.keys
    calls.command.begin(
      Self.cancelScript, keys: [name(of: scope), keys.schedules(.pending, of: scope), keys.guardKey(bucket(of: scope))])
    calls.command.append(request.revision.withBytes { Array($0) } + request.id.withBytes { Array($0) })
    calls.command.append(2 * limits.lifetimeMilliseconds)
    send(about: scope, then) { reply in
      guard let names = reply[0] else { return .success([]) }
      let found = (0..<names.count).compactMap { place in
        names[place]?.bytes.flatMap { ScheduleKey(application: scope.application, target: scope.target, identifier: Name($0)) }
      }
      return .success(found)
    }
  }
}
