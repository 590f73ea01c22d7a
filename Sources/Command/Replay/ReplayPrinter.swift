import JSON
import Operations

/// Reports the progress and the end of a replay.
struct ReplayPrinter: Sendable {
  let isJSON: Bool
  let isDryRun: Bool
  private let log = ReadingLog()

  init(isJSON: Bool, isDryRun: Bool) { (self.isJSON, self.isDryRun) = (isJSON, isDryRun) }

  /// Reports the beginning.
  func begins(_ plan: ReplayPlan, file: String?) {
    let (done, total) = plan.progress
    let conditions = plan.filter.conditions
    StandardError.line(
      "replay \(plan.run) of \(plan.topic): \(TerminalText.count(total - done, "offset"))"
        + (conditions.isEmpty ? "" : ", of them those with " + conditions.joined(separator: ", ")))
    if let file { StandardError.line("its progress is in \(file): after an interruption continue with --resume \(file)") }
  }

  /// Reports an event.
  func tell(_ news: ReplayNews) {
    switch news {
    case .progress(let plan): log.report(isDryRun ? "reading" : "replaying", read: plan.progress.done, of: plan.progress.total)
    case .waits(let behind?): StandardError.line("the workers are behind by \(TerminalText.duration(Int64(behind))): the replay waits")
    case .waits(nil): StandardError.line("the workers have caught up: the replay continues")
    case .reading(let progress): log.report(progress)
    case .unfinished(let count):
      StandardError.line("\(TerminalText.count(count, "request")) \(count == 1 ? "is unfinished" : "are unfinished")")
    case .untold(let count):
      StandardError.line("the outcome of \(TerminalText.count(count, "request")) is unknown: Kafka has deleted their events or journal")
    case .found(let count):
      StandardError.line(
        "\(TerminalText.count(count, "record")) \(count == 1 ? "was" : "were") written but not saved before the interruption")
    case .markersUnknown(let reason):
      StandardError.line("it is unknown which requests were applied before: \(TerminalText.visible(reason))")
    }
  }

  /// Reports the end, which may be early.
  func ends(_ plan: ReplayPlan, isComplete: Bool) {
    let counts = plan.counts
    guard !isJSON else {
      return StandardOutput.json(
        JSONValue.object(["run": plan.run, "state": isComplete ? "complete" : "interrupted", "read": counts.read])
          .appending(contentsOf: counts.json())
          .appending(contentsOf: .object(present: ["mayHaveEffect": plan.isForecast ? Optional(counts.mayHaveEffect) : .none]))
          .appending(["asNew": plan.isNew, "dryRun": isDryRun]).text)
    }
    let what = plan.isOfRequests ? "request" : "event"
    StandardOutput.line(
      "\(isDryRun ? "would replay" : "replayed") \(TerminalText.count(counts[.written], what)) (\(TerminalText.count(counts[.bytes], "byte"))) of "
        + TerminalText.count(counts.read, "record"))
    say(
      counts,
      [
        (.passedOver, "are not meant by the conditions"), (.ofReplays, "were written by a replay"),
        (.ofSchedules, "are due at a time or fired then: their schedules do not change"),
        (.tooLarge, "are too large for Kafka with the headers of a replay"),
        (.fromElsewhere, "have an origin that does not count, or a time more than five minutes ahead: the workers would reject them"),
      ])
    if plan.isForecast, counts[.written] > 0 { forecast(counts, isNew: plan.isNew) }
    if counts[.written] == 0, isComplete, plan.progress.total > 0 {
      StandardError.line("nothing was found: see the range and the conditions")
    }
  }

  private func say(_ counts: ReplayCounts, of what: String = "", _ sentences: [(ReplayCount, String)]) {
    for (kind, sentence) in sentences where counts[kind] > 0 { StandardOutput.line("  \(what)\(counts[kind]) \(sentence)") }
  }

  /// Reports the effects, as far as they are known before the workers judge.
  private func forecast(_ counts: ReplayCounts, isNew: Bool) {
    say(
      counts, of: "of these ",
      [
        (.applied, "were applied before and have no effect"), (.expired, "have expired: they are not shown"),
        (.rejected, "break a rule: they are rejected again and become dead letters once more"),
      ])
    let possible = counts.mayHaveEffect
    if possible == 0 {
      StandardOutput.line("  so no device gets anything of them")
    } else if isNew {
      StandardOutput.line("  so at most \(possible) are delivered again, under new ids")
    } else {
      StandardOutput.line(
        "  so at most \(possible) have an effect: the workers had not finished them, and judge them in their turn")
    }
    if counts[.unknown] > 0 {
      StandardError.line(
        "of \(TerminalText.count(counts[.unknown], "request")) it is unknown whether the workers have applied them; --redis tells, if it is not given"
      )
    }
    if !isNew, counts[.applied] > 0 {
      StandardError.line("--as-new delivers them again: it publishes them as new requests, with new ids")
    }
  }
}
