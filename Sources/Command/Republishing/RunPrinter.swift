import JSON
import Operations

/// Reports the end of a run that publishes requests again, for a person or for a program.
struct RunPrinter: Sendable {
  /// The records that are read: `letter`.
  let noun: String
  /// What is done with them: `redriven`.
  let verb: String
  let isJSON: Bool
  let isDryRun: Bool
  /// The work as it is counted.
  var done = RunCount.written
  /// The other counts, each with the end of its sentence.
  let others: [(kind: RunCount, sentence: String)]

  /// Reports the counts.
  ///
  /// - Parameter further: further members of the JSON object.
  func end(_ report: RunReport, _ further: JSONValue.Members = [:]) {
    let counts = report.counts
    guard !isJSON else {
      let kinds = ([done] + others.map(\.kind)).map { JSONValue.Member($0.rawValue, counts[$0]) }
      return StandardOutput.json(
        JSONValue.object(["state": report.isComplete ? "complete" : "interrupted", "dryRun": isDryRun, "read": counts.read])
          .appending(contentsOf: .object(kinds)).appending(contentsOf: .object(present: further)).text)
    }
    StandardOutput.line("\(counts.done) of \(TerminalText.count(counts.read, noun)) \(isDryRun ? "would be " : "")\(verb)")
    for (kind, sentence) in others where counts[kind] > 0 {
      StandardOutput.line("  \(kind.isEffect ? "of these " : "")\(counts[kind]) \(sentence)")
    }
  }
}
