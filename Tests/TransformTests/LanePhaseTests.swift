import TestSupport
import Testing

@testable import Transform

/// The phase of a lane, by random histories beside a model that keeps what has happened since the last sign.
@Suite struct LanePhaseTests {
  private enum Event: CaseIterable {
    case up, away, distrust, refused, unsuitable, suitable, begin, verified, stale, again, empty, behind, restored, drain
  }

  /// Nothing is judged unless a comparison that began after the last sign of a loss has verified the markers; and no person's devices are
  /// looked up unless the registry was complete after that.
  @Test func nothingIsJudgedThatWasNotVerifiedSinceTheLastSign() {
    for seed in 0..<(isComplete ? 300 : 60) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var phase = LanePhase()
      // The model.
      var (isUp, isSuitable, isVerified, isBehind, isComplete, isDraining) = (false, false, false, false, false, false)
      var comparesSigns: Bool { isUp && isSuitable && !isDraining }
      var comparison = (epoch: 0, isCurrent: false)
      for _ in 0..<200 {
        switch Event.allCases.randomElement(using: &random) ?? .up {
        case .up: isUp = true
        case .away:
          guard isUp else { continue }
          (isUp, isSuitable, isVerified, isBehind, isComplete, comparison.isCurrent) = (false, false, false, false, false, false)
          _ = phase.redisWentAway()
        case .distrust:
          (isVerified, isBehind, isComplete, comparison.isCurrent) = (false, false, false, false)
          #expect(phase.distrust().contains(.compare) == comparesSigns)
        case .refused:
          let actions = phase.writesRefused()
          guard !actions.isEmpty else { continue }
          #expect(actions.contains(.probeWrites))
          // Nothing is lost, so what was complete is so when Redis takes writes again.
          (isVerified, isBehind, comparison.isCurrent) = (false, false, false)
        case .unsuitable:
          guard isUp else { continue }
          let isNew = !isDraining && phase.phase != .suspended(.redisUnsuitable)
          #expect(phase.redisIsUnsuitable() == (isNew ? [.hold, .distrustMarkers] : []))
          (isSuitable, isVerified, isBehind, isComplete, comparison.isCurrent) = (false, false, false, false, false)
        case .suitable:
          guard isUp else { continue }
          #expect(phase.redisIsSuitable() == (isSuitable || isDraining ? [] : [.compare]))
          isSuitable = true
        case .begin: comparison = (phase.epoch, true)
        case .verified:
          let actions = phase.compared(.verified, in: comparison.epoch)
          guard comparesSigns else {
            #expect(actions.isEmpty)
            continue
          }
          if !comparison.isCurrent, comparison.epoch != phase.epoch { #expect(actions == [.compare]) }
          if comparison.epoch == phase.epoch { isVerified = true }
        case .stale: #expect(phase.compared(.verified, in: phase.epoch - 1) == (comparesSigns ? [.compare] : []))
        case .again:
          #expect(phase.compared(.again(afterMilliseconds: 20, ""), in: phase.epoch).allSatisfy { $0 == .compareAfter(milliseconds: 20) })
        case .empty:
          guard comparesSigns else { continue }
          _ = phase.compared(.empty, in: phase.epoch)
          (isVerified, isBehind, isComplete) = (false, false, false)
        case .behind:
          let actions = phase.registryIsBehind(in: phase.epoch)
          let isNew = isVerified && !isDraining && !isComplete && !isBehind
          #expect(actions == (isNew ? [.pauseRequests, .advance] : []))
          if isNew { isBehind = true }
        case .restored:
          let actions = phase.registryRestored(in: phase.epoch)
          if isVerified, !isDraining, !isComplete { #expect(actions == [.resumeRequests, .advance]) }
          if !isDraining { isComplete = isComplete || isVerified }
        case .drain:
          guard Int.random(in: 0..<20, using: &random) == 0, !isDraining else { continue }
          _ = phase.drain()
          isVerified = isVerified && isComplete
          isDraining = true
        }
        #expect(phase.mayJudge == isVerified, "seed \(seed): \(phase.phase)")
        #expect(phase.mayResolveRecipients == (isVerified && isComplete), "seed \(seed): \(phase.phase)")
        #expect(phase.mayBegin == (isVerified && (isBehind || isComplete) && !isDraining), "seed \(seed): \(phase.phase)")
      }
    }
  }

  @Test func whatHasHealedRunsAgainWhateverHappenedBefore() {
    for seed in 0..<(isComplete ? 100 : 20) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var phase = LanePhase()
      for _ in 0..<50 {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: _ = phase.redisWentAway()
        case 6: _ = phase.redisIsUnsuitable()
        case 7: _ = phase.redisIsSuitable()
        case 1: _ = phase.distrust()
        case 2: _ = phase.writesRefused()
        case 3: _ = phase.compared(.empty, in: phase.epoch)
        case 4: _ = phase.compared(.verified, in: phase.epoch)
        default: _ = phase.redisIsSuitable()
        }
      }
      _ = phase.redisWentAway()
      _ = phase.redisIsSuitable()
      #expect(phase.compared(.verified, in: phase.epoch).first == .ready)
      #expect(phase.registryRestored(in: phase.epoch) == [.resumeRequests, .advance])
      #expect(phase.phase == .running)
    }
  }

  @Test func aRestoredRegistryOfAnEarlierEpochCountsForNothing() {
    var phase = LanePhase()
    _ = phase.redisIsSuitable()
    _ = phase.compared(.verified, in: phase.epoch)
    let before = phase.epoch
    _ = phase.distrust()
    _ = phase.compared(.verified, in: phase.epoch)
    #expect(phase.registryRestored(in: before).isEmpty)
    #expect(!phase.mayResolveRecipients)
  }

  @Test func aRedisThatTakesNothingAtTheStartIsWhatTheLaneWaitsFor() {
    var phase = LanePhase()
    _ = phase.redisIsSuitable()
    let epoch = phase.epoch
    #expect(phase.writesRefused().first == .hold)
    #expect(phase.phase == .suspended(.redisRefusesWrites(hasRegistry: false)))
    #expect(phase.writesRefused().isEmpty, "it is said once")
    #expect(phase.compared(.again(afterMilliseconds: 200, ""), in: epoch) == [.compare])
    #expect(phase.compared(.again(afterMilliseconds: 200, ""), in: phase.epoch) == [.compareAfter(milliseconds: 200)])
    #expect(phase.compared(.verified, in: phase.epoch).contains(.restoreRegistry), "it may have missed registrations")
  }

  @Test func anEmptyRedisIsSaidOnce() {
    var phase = LanePhase()
    _ = phase.redisIsSuitable()
    #expect(phase.compared(.empty, in: phase.epoch).contains(.askForRebuild))
    #expect(!phase.compared(.empty, in: phase.epoch).contains(.askForRebuild))
  }
}
