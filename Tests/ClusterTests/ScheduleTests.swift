import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// What is due at a time, with real processes and devices in Python.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"))
  struct ScheduleTests {
    /// The real Kafka, where there is one: the parts take a minute each.
    static let brokers = Array(ClusterKafka.available.suffix(1))
    private static let isLong = ProcessInfo.processInfo.environment["CARILLON_TEST_SCHEDULES"] != nil
    private let schedules = Script(
      "schedules.py", withinSeconds: 300,
      [
        "--contract",
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
          .appendingPathComponent("../../Sources/Notifications/Contract/asyncapi.json").path,
      ])

    @Test(arguments: ScheduleTests.brokers)
    func `what is due at a time is shown once, at its time, unless it is replaced or canceled`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("once", on: kafka)
    }

    @Test(
      .enabled(if: isLong, "it takes three minutes: CARILLON_TEST_SCHEDULES=1"), arguments: ScheduleTests.brokers)
    func `a trigger that repeats fires again and again, in the zones of a person's devices`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("repeats", on: kafka)
    }

    @Test(arguments: ScheduleTests.brokers)
    func `a wall time comes where the devices are, also when they move before it`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("moves", on: kafka)
    }

    @Test(arguments: ScheduleTests.brokers)
    func `devices drop a location trigger that is canceled or replaced, and nothing that was shown since`(_ kafka: ClusterKafka)
      async throws
    { try await schedules.holds("places", on: kafka) }

    @Test(arguments: ScheduleTests.brokers)
    func `an occurrence lasts from its due time on, is skipped when it is too late, and ends where nobody is or too many are`(
      _ kafka: ClusterKafka
    ) async throws { try await schedules.holds("rules", on: kafka) }

    @Test(arguments: ScheduleTests.brokers)
    func `a killed worker neither loses nor repeats an occurrence`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("killed", on: kafka)
    }

    @Test(
      .enabled(if: isLong, "it takes two minutes: CARILLON_TEST_SCHEDULES=1"), arguments: ScheduleTests.brokers)
    func `a worker that is killed before any of the writes of a firing neither loses nor repeats it`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("stepped", on: kafka)
    }

    @Test(arguments: ScheduleTests.brokers)
    func `a cancel of all ends what is pending and nothing newer, whenever its worker is killed`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("all", on: kafka)
    }

    @Test(arguments: ScheduleTests.brokers)
    func `a worker that is killed while it replaces what waits has told it afterwards`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("replaced", on: kafka)
    }

    @Test(arguments: ScheduleTests.brokers)
    func `a request that replaces what is pending is not overtaken by its firing`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("overtaken", on: kafka)
    }

    @Test(arguments: ScheduleTests.brokers)
    func `a bucket that has as many schedules as it may refuses more, and takes one again when one has ended`(_ kafka: ClusterKafka)
      async throws
    { try await schedules.holds("bounded", on: kafka) }

    @Test(arguments: ScheduleTests.brokers)
    func `a replayed firing does nothing, and a redriven request is due by its redriven record`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("tools", on: kafka)
    }

    @Test(arguments: ScheduleTests.brokers)
    func `a Redis that is rebuilt has what is pending, and not what was canceled`(_ kafka: ClusterKafka) async throws {
      try await schedules.holds("lost", on: kafka)
    }
  }
}
