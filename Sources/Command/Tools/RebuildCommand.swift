import EventLoop
import JSON
import Kafka
import Store
import Transform
import Worker

/// `carillon rebuild`.
enum RebuildCommand {
  static let command = Command(
    "rebuild", "restores a Redis that has lost everything, from Kafka",
    discussion:
      "For a Redis that came back empty: the workers report it, are not ready, and wait. It reads the registrations, and then requests and events of the longest lifetime in the order of their times. It restores undelivered notifications to the mailboxes, and writes the markers last; then the workers continue by themselves. It prints its rate and the estimated end. The workers may run meanwhile, and it may be ended and started again at any time. Give it the settings of the transform workers. If there is nothing to rebuild, the exit code is 0; if another rebuild is running, it is 1.",
    groups: [
      AnswerSettings.group, ClusterSettings.group, TransformOptions.stage, MediaOptions.keeping,
      RequestSettings.group, LogSettings.group,
    ],
    examples: [Example("rebuild --kafka broker:9092 --redis redis:6379", "with the workers' other settings, if they have some")]
  ) { values in
    let place = try ClusterPlace(values, client: "carillon-rebuild")
    let log = LogSettings.writer(values)
    defer { log.close() }
    let logger = Logger(log, component: "rebuild")
    let extensions = try await ExtensionsInForce(values, logger)
    let settings = TransformSettings(values, place, worker: "rebuild@\(Machine.hostName)", extensions: extensions.source)
    let loop = EventLoop(name: "rebuild")
    let lane = RebuildLane(settings, on: loop, logger: logger)
    let (reading, pace) = (ReadingLog(), RebuildPace())
    do {
      try await Admin.with(place.kafka) { try await $0.ping() }
      let report = try await Task(executorPreference: loop) {
        try await lane.run { report in
          let words = pace.words(
            report.phase.rawValue, report.records, read: report.read, of: report.total, at: SteadyClock.milliseconds())
          reading.report(report.phase.rawValue, read: report.read, of: report.total, more: words)
        }
      }.value
      await loop.close()
      await extensions.close()
      let milliseconds = pace.milliseconds(at: SteadyClock.milliseconds())
      values[AnswerSettings.json] ? report.writeJSON(milliseconds) : report.writeText(milliseconds)
      return .done
    } catch let refusal as RebuildRefusal {
      await loop.close()
      StandardError.line("\(refusal)")
      if case .alreadyRunning = refusal { return .answerIsNo }
      values[AnswerSettings.json] ? RebuildReport().writeJSON(0) : RebuildReport().writeText(0)
      return .done
    } catch {
      await loop.close()
      if let error = error as? KafkaError { throw place.kafka.failure(error) }
      if let error = error as? StoreError, error.code == .faulty {
        throw Failure(
          .dependencyMissing,
          "\(error): something else lies in this Redis. Delete that key, or empty the Redis with FLUSHALL if it is Carillon's alone, and "
            + "type the same command again")
      }
      throw error
    }
  }
}

extension RebuildReport {
  fileprivate func writeText(_ milliseconds: Int64) {
    StandardOutput.line(
      "applied \(TerminalText.count(registrations, "registration")), "
        + "\(TerminalText.count(schedules, "state")) of schedules, \(TerminalText.count(requests, "request")) and \(TerminalText.count(endings, "ending")) in \(TerminalText.duration(milliseconds))"
    )
    if unreadable > 0 { StandardOutput.line("passed over \(TerminalText.count(unreadable, "record")) that nobody can read") }
  }

  fileprivate func writeJSON(_ milliseconds: Int64) {
    StandardOutput.json(
      JSONValue.object([
        "registrations": registrations, "schedules": schedules, "requests": requests, "endings": endings,
        "unreadable": unreadable, "milliseconds": milliseconds,
      ]).text)
  }
}
