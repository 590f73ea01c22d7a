import EventLoop
import Kafka
import Synchronization
import TestSupport
import Testing
import Worker

@testable import Command

/// What a process does about a lane that fails, with lanes that do nothing else.
@Suite struct LaneHostTests {
  /// What the lanes of a host have done, and what they are to do.
  private final class Script: Sendable {
    struct State {
      var places: [LanePlace] = []
      var ending: [Int] = []
      var ended: [Int] = []
      var givenUp = 0
      var mayRun = true
      var mayEnd = true
    }
    let state = Mutex(State())
    let restarts = Counter()

    func read<T: Sendable>(_ part: (State) -> T) -> T { state.withLock { part($0) } }
    func set(mayRun: Bool = true, mayEnd: Bool = true) { state.withLock { ($0.mayRun, $0.mayEnd) = (mayRun, mayEnd) } }

    func eventually(_ what: String, _ condition: (State) -> Bool) async throws {
      let holds = await TestSupport.eventually(what) { state.withLock { condition($0) } }
      if !holds { throw ClusterFailure("never: \(what)") }
    }

    /// Has the newest lane's clients fail for good.
    func fail(times: Int = 1, _ code: KafkaError.Code = .fatal) {
      let place = read { $0.places.last }
      for _ in 0..<times { place?.onFatal(KafkaError(code, "use the Kafka client", message: "out of order")) }
    }
  }

  private actor ScriptedLane: WorkerLane {
    private let script: Script
    private let number: Int

    init(_ script: Script, _ place: LanePlace) {
      self.script = script
      number = script.state.withLock { state in
        state.places.append(place)
        return state.places.count
      }
    }

    func start() async throws -> SocketAddress? {
      try await script.eventually("lane \(number) may run") { $0.mayRun }
      return SocketAddress(host: "127.0.0.1", port: 40_000)
    }

    func drain(withinMilliseconds milliseconds: Int) async {
      script.state.withLock { $0.ending.append(number) }
      try? await script.eventually("lane \(number) may end") { $0.mayEnd }
      script.state.withLock { $0.ended.append(number) }
    }
  }

  /// Gives `body` a host whose first lane runs, and stops it.
  @discardableResult
  private func withHost(_ health: Health = Health(), _ body: (Script, Health) async throws -> Void) async throws -> Script {
    let script = Script()
    let failures = LaneFailures(drainMilliseconds: 1_000, restarts: script.restarts) { _ in script.state.withLock { $0.givenUp += 1 } }
    let host = LaneHost("lane-0", logger: .silent, health: health, failures: failures) { ScriptedLane(script, $0) }
    #expect(try await host.start()?.port == 40_000)
    try await body(script, health)
    await host.stop(withinMilliseconds: 1_000)
    return script
  }

  @Test func `a process is not ready before each of its lanes runs`() async throws {
    #expect(!RoleProcess.health(of: ["lane-0"]).isReady)
    try await withHost(RoleProcess.health(of: ["lane-0", "lane-1"])) { _, health in
      #expect(!health.isReady, "the second lane has not started")
      health.forLane("lane-1").set("started", ready: true)
      #expect(health.isReady, "\(health.json)")
    }
  }

  @Test func aLaneThatStartsAgainIsNotReadyUntilItRunsAndListensWhereItDid() async throws {
    try await withHost { script, health in
      script.read { $0.places }[0].health.set("journal", ready: false, "what only the former lane knew")
      script.set(mayRun: false)
      // Each client of the lane may say so; together they are one failure.
      script.fail(times: 3)
      try await script.eventually("another lane is there") { $0.places.count == 2 }
      #expect(script.read { $0.ended } == [1] && script.restarts.value == 1)
      #expect(script.read { $0.places }.map(\.address?.port) == [nil, 40_000])
      #expect(!health.isReady && health.json.contains("the lane starts again: use the Kafka client: out of order"))
      #expect(!health.json.contains("what only the former lane knew"))
      script.set()
      try await script.eventually("it is ready") { _ in health.isReady }
    }
  }

  @Test func `a lane whose place in the group another worker takes starts again, however often`() async throws {
    try await withHost { script, health in
      for time in 1...6 {
        script.fail(times: 1, .fencedInstance)
        try await script.eventually("lane \(time + 1) runs") { $0.places.count == time + 1 && health.isReady }
      }
      #expect(script.read { $0.givenUp } == 0 && script.restarts.value == 6)
    }
  }

  @Test func aFailureDuringAStartCountsAsOneAndTheFourthIsTheLast() async throws {
    try await withHost { script, health in
      script.set(mayRun: false)
      script.fail()
      try await script.eventually("the second lane is about to run") { $0.places.count == 2 }
      script.fail()
      try await script.eventually("its failure counts") { _ in script.restarts.value == 2 }
      script.set()
      try await script.eventually("the third lane runs") { $0.places.count == 3 && health.isReady }
      #expect(script.read { $0.ended } == [1, 2])
      script.fail()
      try await script.eventually("the fourth lane runs") { $0.places.count == 4 && health.isReady }
      script.fail()
      try await script.eventually("it is given up") { $0.givenUp == 1 }
      #expect(!health.isReady && script.read { $0.places.count } == 4 && script.restarts.value == 3)
    }
  }

  @Test func aProcessThatEndsWaitsForTheLaneThatHasFailedAndStartsNoOther() async throws {
    let script = try await withHost { script, health in
      script.set(mayEnd: false)
      script.fail()
      try await script.eventually("the lane is ending") { $0.ending == [1] }
      Task {
        try await script.eventually("the process is ending") { _ in health.json.contains("the process is ending") }
        script.set()
      }
    }
    #expect(script.read { $0.ended } == [1] && script.read { $0.places.count } == 1)
  }
}
