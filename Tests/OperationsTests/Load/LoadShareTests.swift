import Notifications
import TestSupport
import Testing

@testable import Operations

/// How a plan is divided into shares.
@Suite struct LoadShareTests {
  private static func plan(_ seed: UInt64) -> LoadPlan {
    var (random, plan) = (SeededRandom(seed: seed), LoadPlan())
    plan.devices.perUser = Int.random(in: 1...5, using: &random)
    plan.devices.count = Int.random(in: 40...300, using: &random)
    plan.requests.rate = Int.random(in: 10...200, using: &random)
    plan.devices.connectRate = Int.random(in: 1...200, using: &random)
    return plan
  }

  @Test(arguments: 0..<(isComplete ? 100 : 20) as Range<UInt64>)
  func `all shares together are the plan, and no two have a device, a person or a request in common`(seed: UInt64) throws {
    let plan = Self.plan(seed)
    let count = Int(seed % 8) + 1
    try plan.check(shares: count)
    let shares = (1...count).map { plan.share($0, of: count) }
    let names = shares.map { $0.names(run: "big", series: 5) }
    let tokens = zip(shares, names).flatMap { share, names in (0..<share.plan.devices.count).map { names.token($0).text } }
    let people = zip(shares, names).flatMap { share, names in (0..<share.plan.users).map { names.user($0) } }
    let whole = LoadNames(run: "big", series: 9)
    #expect(tokens == (0..<plan.devices.count).map { whole.token($0).text })
    #expect(people == (0..<plan.users).map { whole.user($0) })
    #expect(shares.reduce(0) { $0 + LoadSchedule($1.plan.requests).total } == LoadSchedule(plan.requests).total)
    for (share, names) in zip(shares, names) {
      for device in 0..<share.plan.devices.count {
        #expect(names.user(share.plan.user(of: device)) == whole.user(plan.user(of: share.firstDevice + device)))
        #expect(Array(names.token(device).text.utf8).withUnsafeBytes { names.device(ofToken: $0) } == device)
      }
      for other in shares where other.number < share.number {
        let token = Array(whole.token(other.firstDevice).text.utf8)
        let number = try #require(token.withUnsafeBytes { names.device(ofToken: $0) })
        #expect(!(0..<share.plan.devices.count).contains(number), "it is a device of another share")
      }
    }
    #expect(Set(shares.map(\.plan.seed)).count == count)
    // The requests follow each other without a gap, so each share knows those of all.
    let ids = zip(shares, names).flatMap { share, names in (0..<LoadSchedule(share.plan.requests).total).map { names.id($0) } }
    #expect(ids == ids.indices.map { NotificationID(high: 5, low: UInt64($0)) })
    for (share, names) in zip(shares, names) {
      #expect(share.requestsOfRun.count == ids.count && ids.map { names.request(of: $0) } == share.requestsOfRun.map(Optional.some))
    }
    #expect(plan.share(1, of: 1) == LoadShare(all: plan))
  }

  @Test func `shares that would get nothing are refused by the flag and the rule`() {
    func problem(_ shares: Int, _ change: (inout LoadPlan) -> Void) -> String? {
      var plan = LoadPlan()
      change(&plan)
      do throws(LoadPlan.Problem) { try plan.check(shares: shares) } catch { return "--\(error.flag) \(error.rule)" }
      return nil
    }
    #expect(
      problem(5) { ($0.devices.count, $0.devices.perUser) = (8, 2) }?.hasPrefix("--share must not make more shares than people") == true)
    #expect(problem(5) { $0.requests.rate = 4 } == "--share must not make more shares than --rate, which they divide")
    #expect(problem(5) { ($0.requests.rate, $0.requests.durationMilliseconds) = (5, 900) }?.contains("--duration is too short") == true)
    #expect(problem(5) { _ in } == nil)
  }
}
