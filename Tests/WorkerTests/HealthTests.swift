import EventLoop
import Foundation
import Synchronization
import TestSupport
import Testing
import Worker

@Suite struct HealthTests {
  /// Milliseconds that only the test moves.
  final class TestClock: Sendable {
    let milliseconds = Atomic<Int64>(1000)
    var now: Int64 { milliseconds.load(ordering: .relaxed) }
    func advance(_ by: Int64) { milliseconds.wrappingAdd(by, ordering: .relaxed) }
  }

  private struct Conditions: Decodable {
    struct Condition: Decodable { var name: String, lane: String?, ready: Bool, reason: String?, since: String }
    var ready: Bool
    var conditions: [Condition]
  }

  private func conditions(_ health: Health) throws -> Conditions { try JSONDecoder().decode(Conditions.self, from: Data(health.json.utf8)) }

  @Test func readyOnlyWhenEveryConditionOfEveryLaneIs() throws {
    let health = Health()
    #expect(health.isReady)
    let (a, b) = (health.forLane("a"), health.forLane("b"))
    a.set("redis", ready: false, "connecting \"here\"")
    b.set("redis", ready: true)
    #expect(!health.isReady)
    let shown = try conditions(health)
    #expect(!shown.ready)
    #expect(shown.conditions.map(\.lane) == ["a", "b"])
    #expect(shown.conditions.map(\.reason) == ["connecting \"here\"", nil])
    a.set("redis", ready: true)
    #expect(health.isReady)
    b.set("draining", ready: false, "the process ends")
    b.removeLane(keeping: "draining")
    #expect(try conditions(health).conditions.map(\.name) == ["redis", "draining"])
    b.removeLane()
    #expect(try conditions(health).conditions.map(\.name) == ["redis"])
    health.set("kafka", ready: false, "gone")
    health.remove("kafka")
    #expect(health.isReady)
  }

  @Test func timeOfAConditionIsThatOfItsLastChange() async throws {
    let health = Health()
    health.set("redis", ready: false, "one")
    let first = try conditions(health).conditions[0].since
    let then = WallClock.milliseconds()
    await eventually("the clock goes on") { WallClock.milliseconds() >= then + 2 }
    health.set("redis", ready: false, "two")
    #expect(try conditions(health).conditions[0].since == first)
    #expect(try conditions(health).conditions[0].reason == "two")
  }

  @Test func whatIsNotReadyIsToldInTheOrderInWhichItWasSet() throws {
    let health = Health()
    let lane = health.forLane("a")
    health.set("brokers", ready: true)
    lane.set("redis", ready: false, "connecting")
    health.set("draining", ready: false, "ending")
    let since = try #require(health.unready.first?.since)
    lane.set("redis", ready: false, "refused")
    #expect(health.unready.map(\.name) == ["redis", "draining"] && health.unready.map(\.lane) == ["a", ""])
    #expect(health.unready.map(\.reason) == ["refused", "ending"] && health.unready.first?.since == since && since > 0)
    lane.set("redis", ready: true)
    #expect(health.unready.map(\.name) == ["draining"])
  }

  @Test func loopThatDoesNotTurnIsFoundAndForgivenWhenItTurnsAgain() async throws {
    let clock = TestClock()
    let health = Health(silence: .seconds(5), now: { clock.now })
    let (good, stuck) = (EventLoop(name: "good"), EventLoop(name: "stuck"))
    health.watch(good)
    health.watch(stuck)
    let (isHeld, release) = (Latch(), Latch())
    stuck.execute {
      isHeld.open()
      release.block()
    }
    await isHeld.wait()

    #expect(health.silentLoops().isEmpty)
    // The good loop has answered when it has run something that came after the question.
    try await good.run {}
    clock.advance(5000)
    #expect(health.silentLoops().isEmpty, "the limit itself is allowed")
    try await good.run {}
    clock.advance(1)
    #expect(health.silentLoops().map(\.name) == ["stuck"])
    #expect(health.silentLoops().first?.milliseconds == 5001)

    release.open()
    try await stuck.run {}
    #expect(health.silentLoops().isEmpty)
    health.unwatch(good)
    health.unwatch(stuck)
    await good.close()
    await stuck.close()
  }
}
