/// What a lane may do: one phase, changed by what happens, answered with what is to be done about it. A value.
///
/// Redis may lose the end of what was written to it, and never without a sign: a broken connection, a refusal, markers that are not as they
/// were left. After each sign nothing is judged until the markers are compared. What a comparison that began before the sign has found does
/// not count: each sign begins a new epoch.
struct LanePhase {
  /// The phases.
  enum Phase: Equatable {
    /// Redis has not told yet whether it can be worked with.
    case starting
    /// Redis answers, and what it has is compared with what was written to it.
    case verifying
    /// Redis has what was written to it, and may miss registrations that others have published meanwhile. When it is known to, they flow,
    /// and requests wait for them in their partitions.
    case restoringRegistry(isBehind: Bool)
    /// Everything flows.
    case running
    /// Nothing is judged until something outside has changed.
    case suspended(Suspension)
    /// What is in flight comes to its end, nothing new is begun, and nothing is judged unless Redis was verified all the while.
    case draining(isVerified: Bool)
    /// Nothing happens any more.
    case closed
  }

  /// What a suspended lane waits for.
  enum Suspension: Equatable {
    /// Redis does not answer.
    case redisAway
    /// Redis takes nothing that writes, which loses nothing: where it had all registrations it has them still.
    case redisRefusesWrites(hasRegistry: Bool)
    /// Redis has lost everything: somebody has to rebuild it.
    case redisEmpty
    /// Redis may throw away what it is given, or its clock and the machine's differ too much: somebody has to change that.
    case redisUnsuitable
  }

  /// What a comparison of the markers has found.
  enum Finding: Equatable {
    /// Redis has what was written to it, and everything that was offered has begun.
    case verified
    /// Nothing yet: compare again after so many milliseconds.
    case again(afterMilliseconds: Int)
    /// Redis has lost everything, or so much that it looks like everything.
    case empty
    /// A partition has another owner.
    case otherOwner
  }

  /// What is to be done.
  enum Action: Equatable {
    /// Take nothing more of what is fetched.
    case hold
    /// Go on with what was fetched, and fetch more.
    case advance
    /// What was applied since the markers may be lost: rewind to them.
    case distrustMarkers
    /// The next comparison shows whether Redis takes writes.
    case probeWrites
    /// Compare the markers.
    case compare
    /// Compare them after so many milliseconds.
    case compareAfter(milliseconds: Int)
    /// Find out whether Redis has all registrations, and wait until it has.
    case restoreRegistry
    /// Only registrations are to flow.
    case pauseRequests
    /// Requests are to flow again.
    case resumeRequests
    /// Leave the group and join it again.
    case rejoin
    /// Redis is ready.
    case ready
    /// Somebody has to run `carillon rebuild`.
    case askForRebuild
  }

  /// How often the markers are compared without a sign, which finds out that an idle Redis was emptied.
  static let quietMilliseconds = 15_000
  /// How soon it is tried whether a Redis takes writes again, or was rebuilt.
  static let (refusedMilliseconds, emptyMilliseconds) = (500, 2_000)
  /// How soon markers are compared that were not sent since Redis had too much to do.
  static let overloadedMilliseconds = 200

  /// The phase.
  private(set) var phase = Phase.starting
  /// Counts the signs that Redis may have lost something.
  private(set) var epoch = 0

  /// A lane in a phase; one that rebuilds Redis is running from its beginning.
  init(_ phase: Phase = .starting) { self.phase = phase }

  // MARK: What may be done

  /// Whether records may be begun.
  var mayBegin: Bool { phase == .running || isRegistryBehind }

  /// Whether only registrations may be begun: requests for people would wait for them, and take all the slots meanwhile.
  var isRegistryBehind: Bool { phase == .restoringRegistry(isBehind: true) }

  /// Whether what was begun may be judged.
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

  // MARK: What happens

  /// Redis answers, and keeps what it is given.
  mutating func redisIsSuitable() -> [Action] {
    switch phase {
    case .starting, .suspended(.redisAway), .suspended(.redisUnsuitable):
      phase = .verifying
      return [.compare]
    default: return []
    }
  }

  /// Redis answers, and would throw away what it is given.
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

  /// Redis has refused what writes: nothing is lost.
  mutating func writesRefused() -> [Action] {
    guard isVerified || phase == .verifying else { return [] }
    // A comparison that is under way has not tried to write.
    epoch += 1
    phase = .suspended(.redisRefusesWrites(hasRegistry: phase == .running))
    return [.hold, .probeWrites, .compareAfter(milliseconds: Self.refusedMilliseconds)]
  }

  /// Some markers were not sent, for too much was in flight: nothing is lost, and a comparison levels them.
  func markersNotSent() -> [Action] { mayCompare ? [.compareAfter(milliseconds: Self.overloadedMilliseconds)] : [] }

  /// The markers were compared; the comparison began in this epoch.
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
    case .again(0): return [.compare]
    case .again(let milliseconds): return [.compareAfter(milliseconds: milliseconds)]
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

  /// Enters a phase in which nothing is judged; false where the lane is ending, which then judges nothing any more.
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
