import EventLoop
import Kafka
import Operations
import Worker

/// The settings and the way of all commands that publish requests again.
enum RunCommand {
  static let isDryRun = Setting(
    "replay.dry-run", flag: "dry-run", .boolean, default: false, "Reads everything and writes nothing: shows what would be done.")
  static let isNew = Setting(
    "replay.as-new", .boolean, default: false,
    "Makes new requests, without the first place, so they are newer than all before: they are shown again, and replace newer ones.")
  static let records = Setting(
    "replay.records-per-second", .integer(0...100_000_000), default: 1_000,
    "Maximum records written in a second; 0: as many as Kafka takes.")

  /// Runs until its end, until a signal stops it, or until it fails.
  ///
  /// - Parameters:
  ///   - wayOn: how an interrupted run continues, as a sentence; nil if it cannot.
  ///   - end: prints the report, also that of a run that has failed.
  static func run(
    _ kafka: KafkaConfiguration, _ rules: RequestRules, wayOn: () -> String?, _ body: (ClusterTool, RunStop) async throws -> RunReport,
    end: (RunReport) -> Void
  ) async throws -> RunReport {
    // Its watches end with the process.
    let signals = StopSignals(on: EventLoop(name: "signals"))
    try await signals.watch()
    let stop = RunStop()
    let stopping = Task {
      _ = await signals.ending()
      stop.stop()
    }
    defer { stopping.cancel() }
    let result: Result<RunReport, any Error> = try await ReadingLog.with(kafka, rules, loop: "run") { tool in
      do { return .success(try await body(tool, stop)) } catch { return .failure(error) }
    }
    let failure: (any Error)?
    switch result {
    case .success(let report):
      end(report)
      if report.isComplete { return report }
      failure = report.failure
    case .failure(let error): failure = error
    }
    if let error = failure as? KafkaError { throw kafka.failure(error, midway: wayOn() ?? "try again") }
    if !(failure is ReplayRefusal), let wayOn = wayOn() { StandardError.line("interrupted: \(wayOn)") }
    if let failure { throw failure }
    return try result.get()
  }
}

extension RunSettings {
  /// The settings of a run that does not watch the workers.
  init(_ values: SettingValues, writingTo topics: [String], at kafka: KafkaConfiguration) async throws {
    self.init()
    let records = values[RunCommand.records]
    recordsPerSecond = records == 0 ? nil : records
    isDryRun = values[RunCommand.isDryRun]
    limits = try await Admin.with(kafka) { try await $0.writeLimits(of: topics, at: kafka) }
  }
}
