import Kafka

/// What a lane may do now: one phase. Each event changes it and answers with actions. A value.
///
/// Redis may lose its latest writes, but never without a sign: a broken connection, a refusal, or markers that differ from those that the
/// lane wrote. After each sign the lane judges nothing until it has compared the markers. Each sign begins a new epoch, so the result of a
/// comparison that began before it does not count.
struct LanePhase {
  /// The phases.
  enum Phase: Equatable {
    /// The lane does not know yet whether Redis is suitable.
    case starting
    /// Redis answers. The lane compares its markers with those that it wrote.
    case verifying
    /// Redis has what this lane wrote, but may lack registrations of others. If it lacks some, only registrations are begun, and requests
    /// wait in their partitions.
    case restoringRegistry(isBehind: Bool)
    /// Records are begun and judged.
    case running
    /// Nothing is judged until an external condition has changed.
    case suspended(Suspension)
    /// Records in flight end and no new ones begin. They are judged only if Redis was verified all the time.
    case draining(isVerified: Bool)
    /// The lane has ended.
    case closed
  }

  /// What a suspended lane waits for.
  enum Suspension: Equatable {
    /// Redis does not answer.
    case redisAway
    /// Redis refuses writes. It loses nothing by that: if it had all registrations it still has them.
    case redisRefusesWrites(hasRegistry: Bool)
    /// Redis has lost everything: somebody has to rebuild it.
    case redisEmpty
    /// Redis may evict keys, or its clock and the machine's differ too much: somebody has to change that.
    case redisUnsuitable
  }

  /// The result of a comparison of the markers.
  enum Finding {
    /// Redis has what was written to it, and all offered partitions have begun.
    case verified
    /// Something has changed meanwhile or did not answer: compare again after so many milliseconds, for this reason.
    case again(afterMilliseconds: Int, String)
    /// Redis has lost everything, or so much that it looks like everything.
    case empty
    /// A partition has another owner: leave the group and join it again.
    case otherOwner(TopicPartition)
  }

  /// An effect that the owner runs.
  enum Action: Equatable {
    /// Stop taking fetched records.
    case hold
    /// Continue with fetched records, and fetch more.
    case advance
    /// Rewind to the markers: records that were applied since may be lost.
    case distrustMarkers
    /// Have the next comparison show whether Redis takes writes.
    case probeWrites
    /// Compare the markers.
    case compare
    /// Compare them after so many milliseconds.
    case compareAfter(milliseconds: Int)
    /// Wait until Redis has all registrations.
    case restoreRegistry
    /// Take registrations only.
    case pauseRequests
    /// Take requests again.
    case resumeRequests
    /// Leave the group and join it again.
    case rejoin
    /// Report that Redis is ready.
    case ready
    /// Ask for `carillon rebuild`.
    case askForRebuild
  }

  /// How often the markers are compared without a sign. This detects that an idle Redis was emptied.
  static let quietMilliseconds = 15_000
  /// How soon the lane checks again whether Redis takes writes, or was rebuilt.
  static let (refusedMilliseconds, emptyMilliseconds) = (500, 2_000)
  /// How soon markers are compared that were not sent because Redis was overloaded.
  static let overloadedMilliseconds = 200

  /// The phase.
  private(set) var phase = Phase.starting
  /// Counts the signs that Redis may have lost something.
  private(set) var epoch = 0

  /// A lane in a phase; one that rebuilds Redis is running from its beginning.
  init(_ phase: Phase = .starting) { self.phase = phase }

  // MARK: Permissions

  /// Whether records may be begun.
  var mayBegin: Bool { phase == .running || isRegistryBehind }

  /// Whether only registrations may begin. Requests for people would wait for them, and take all slots.
  var isRegistryBehind: Bool { phase == .restoringRegistry(isBehind: true) }

  /// Whether records in flight may be judged.
  var mayJudge: Bool { isVerified || phase == .draining(isVerified: true) }

  private var isVerified: Bool { mayBegin || phase == .restoringRegistry(isBehind: false) }

  /// Whether the devices of people may be looked up.
  var mayResolveRecipients: Bool { phase == .running || phase == .draining(isVerified: true) }

  /// Whether markers may be raised.
  var mayCheckpoint: Bool { mayJudge }

  /// Whether the lane is ending or has ended.
  var isEnding: Bool {
    switch phase {
    case .draining, .closed: true
    default: false
    }
  }

  /// Whether a comparison can find anything.
  var mayCompare: Bool {
    switch phase {
    case .starting, .suspended(.redisAway), .suspended(.redisUnsuitable): false
    default: !isEnding
    }
  }

  // MARK: Events

  /// Redis answers, and keeps its data.
  mutating func redisIsSuitable() -> [Action] {
    switch phase {
    case .starting, .suspended(.redisAway), .suspended(.redisUnsuitable):
      phase = .verifying
      return [.compare]
    default: return []
    }
  }

  /// Redis answers, but may evict keys, or the clocks differ too much.
  mutating func redisIsUnsuitable() -> [Action] {
    guard phase != .suspended(.redisUnsuitable) else { return [] }
    epoch += 1
    guard enterUnverified(.suspended(.redisUnsuitable)) else { return [] }
    return [.hold, .distrustMarkers]
  }

  /// Redis does not answer any more.
  mutating func redisWentAway() -> [Action] {
    epoch += 1
    guard enterUnverified(.suspended(.redisAway)) else { return [] }
    return [.hold, .distrustMarkers]
  }

  /// Redis may have lost what was written to it.
  mutating func distrust() -> [Action] {
    epoch += 1
    let isUp = mayCompare
    guard enterUnverified(isUp ? .verifying : phase) else { return [] }
    return isUp ? [.hold, .distrustMarkers, .compare] : [.hold, .distrustMarkers]
  }

  /// Redis has refused a write. Nothing is lost.
  mutating func writesRefused() -> [Action] {
    guard isVerified || phase == .verifying else { return [] }
    // A running comparison has not tried to write, so its result must not count.
    epoch += 1
    phase = .suspended(.redisRefusesWrites(hasRegistry: phase == .running))
    return [.hold, .probeWrites, .compareAfter(milliseconds: Self.refusedMilliseconds)]
  }

  /// Some markers were not sent, since too many calls were in flight. Nothing is lost; a comparison levels them.
  func markersNotSent() -> [Action] { mayCompare ? [.compareAfter(milliseconds: Self.overloadedMilliseconds)] : [] }

  /// The markers were compared, in a comparison that began in this epoch.
  mutating func compared(_ finding: Finding, in epoch: Int) -> [Action] {
    guard mayCompare else { return [] }
    guard epoch == self.epoch else { return [.compare] }
    switch finding {
    case .verified:
      let quiet = Action.compareAfter(milliseconds: Self.quietMilliseconds)
      if isVerified { return [quiet] }
      if phase == .suspended(.redisRefusesWrites(hasRegistry: true)) {
        phase = .running
        return [.ready, .advance, quiet]
      }
      phase = .restoringRegistry(isBehind: false)
      return [.ready, .restoreRegistry, .advance, quiet]
    case .again(0, _): return [.compare]
    case .again(let milliseconds, _): return [.compareAfter(milliseconds: milliseconds)]
    case .empty:
      let isKnown = phase == .suspended(.redisEmpty)
      phase = .suspended(.redisEmpty)
      let again = Action.compareAfter(milliseconds: Self.emptyMilliseconds)
      return isKnown ? [again] : [.hold, .askForRebuild, again]
    case .otherOwner: return [.rejoin]
    }
  }

  /// Whether a lane waits for registrations since this epoch.
  func restoresRegistry(since epoch: Int) -> Bool {
    epoch == self.epoch && (phase == .restoringRegistry(isBehind: false) || isRegistryBehind)
  }

  /// Redis misses registrations; this was found in this epoch.
  mutating func registryIsBehind(in epoch: Int) -> [Action] {
    guard restoresRegistry(since: epoch), !isRegistryBehind else { return [] }
    phase = .restoringRegistry(isBehind: true)
    return [.pauseRequests, .advance]
  }

  /// Redis has all registrations; this was found in this epoch.
  mutating func registryRestored(in epoch: Int) -> [Action] {
    guard restoresRegistry(since: epoch) else { return [] }
    phase = .running
    return [.resumeRequests, .advance]
  }

  /// The lane is to end.
  mutating func drain() -> [Action] {
    guard !isEnding else { return [] }
    phase = .draining(isVerified: phase == .running)
    return [.hold]
  }

  /// The lane has ended.
  mutating func close() { phase = .closed }

  /// Enters a phase in which nothing is judged. Returns false if the lane is ending; then it judges nothing any more.
  private mutating func enterUnverified(_ next: Phase) -> Bool {
    switch phase {
    case .closed: return false
    case .draining:
      phase = .draining(isVerified: false)
      return false
    default:
      phase = next
      return true
    }
  }
}
