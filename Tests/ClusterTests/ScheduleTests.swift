import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// What is due at a time, with real processes and devices in Python.
  @Suite(.serialized, .inPython)
  struct ScheduleTests {
    /// Why the short form leaves out all but one: a trigger is waited for in reality.
    private static let further: CompleteFormTrait = .onlyInAll(
      "CalendarsTests, TransformTests and StoreTests show it with values and a clock of theirs")
    private let schedules = Script(
      "schedules.py", short: ["once"],
      complete: [
        "moves", "repeats", "stepped", "killed", "rules", "all", "replaced", "overtaken", "tools", "lost", "places", "bounded",
      ], ClusterTests.contract)

    @Test func `what is due at a time is shown once, at its time, unless it is replaced or canceled`() async throws {
      try await schedules.holds("once")
    }

    @Test(further)
    func `a trigger that repeats fires again and again, in the zones of a person's devices`() async throws {
      try await schedules.holds("repeats")
    }

    @Test(further)
    func `a wall time comes where the devices are, also when they move before it`() async throws {
      try await schedules.holds("moves")
    }

    @Test(further)
    func `devices drop a location trigger that is canceled or replaced, and nothing that was shown since`()
      async throws
    { try await schedules.holds("places") }

    @Test(further)
    func `an occurrence lasts from its due time on, is skipped when it is too late, and ends where nobody is or too many are`() async throws
    { try await schedules.holds("rules") }

    @Test(further)
    func `a killed worker neither loses nor repeats an occurrence`() async throws {
      try await schedules.holds("killed")
    }

    @Test(further)
    func `a worker that is killed before any of the writes of a firing neither loses nor repeats it`() async throws {
      try await schedules.holds("stepped")
    }

    @Test(further)
    func `a cancel of all ends what is pending and nothing newer, whenever its worker is killed`() async throws {
      try await schedules.holds("all")
    }

    @Test(further)
    func `a worker that is killed while it replaces what waits has told it afterwards`() async throws {
      try await schedules.holds("replaced")
    }

    @Test(further)
    func `a request that replaces what is pending is not overtaken by its firing`() async throws {
      try await schedules.holds("overtaken")
    }

    @Test(further)
    func `a bucket that has as many schedules as it may refuses more, and takes one again when one has ended`()
      async throws
    { try await schedules.holds("bounded") }

    @Test(further)
    func `a replayed firing does nothing, and a redriven request is due by its redriven record`() async throws {
      try await schedules.holds("tools")
    }

    @Test(further)
    func `a Redis that is rebuilt has what is pending, and not what was canceled`() async throws {
      try await schedules.holds("lost")
    }
  }
}
