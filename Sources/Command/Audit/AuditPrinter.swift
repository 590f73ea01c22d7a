import JSON
import Notifications
import Operations

/// The findings of an audit, for a person or for a program.
struct AuditPrinter {
  let timelines: TimelinePrinter

  // MARK: For a person

  /// Renders each violation with its records, then the counts.
  func text(_ report: AuditReport) -> [String] {
    let findings = report.findings
    var lines: [String] = []
    for (violation, timeline) in zip(findings.violations, report.timelines) {
      lines.append("VIOLATION \(violation.kind.name)  \(violation.id)  \(violation.kind.rawValue)\(detail(violation))")
      for step in timeline.steps { lines.append("  " + timelines.line(step)) }
    }
    let further = findings.violationCount - findings.violations.count
    if further > 0 { lines.append("… and \(TerminalText.count(further, "further violation"))") }
    if !lines.isEmpty { lines.append("") }
    if let sentence = ForgottenRecords.sentence(report.forgotten) { lines.append(sentence) }
    let read =
      "\(TerminalText.count(findings.journal, "record")) of the journal, \(TerminalText.count(findings.events, "event")), "
      + TerminalText.count(findings.deadLetters, "dead letter")
    lines.append("\(TerminalText.count(findings.requests, "request")) in \(TerminalText.count(findings.records, "record")), \(read)")
    for outcome in Outcome.allCases {
      if let count = findings.outcomes[outcome] { lines.append(row(count, outcome.sentence(""))) }
    }
    if findings.inFlight > 0 { lines.append(row(findings.inFlight, "in flight")) }
    // That nothing was lost is what was asked.
    lines.append(row(findings.lost, "lost"))
    for (count, what) in [
      (findings.derived, "of these endings follow from what else happened, and no event tells them"),
      (findings.repeats, "events were emitted again"), (findings.known, "deliveries were dropped by devices that had them"),
      (findings.staleDropped, "stale deliveries were dropped by devices"),
      (findings.acknowledgedLate, "were acknowledged after their end, and may have been shown before"),
      (findings.unreadable, "records cannot be read, or are no events, or none of the journal"),
      (findings.untold, "requests are older than the events or the journal that is left: nothing can be said of them"),
    ] where count > 0 { lines.append(row(count, what)) }
    for kind in Violation.Kind.allCases {
      if let count = findings.counts[kind] { lines.append(row(count, "VIOLATIONS \(kind.name): \(kind.rawValue)")) }
    }
    if findings.violationCount == 0 { lines.append(row(0, "violations")) }
    return lines
  }

  private func detail(_ violation: Violation) -> String { violation.detail.isEmpty ? "" : ": \(violation.detail)" }

  private func row(_ count: Int, _ what: String) -> String { TerminalText.aligned("\(count)", 10) + "  " + what }

  // MARK: For a program

  /// Renders an object for each violation, then one with the counts.
  func json(_ report: AuditReport) -> [String] {
    let findings = report.findings
    var lines = zip(findings.violations, report.timelines).map { violation, timeline in
      JSONValue.object([
        "violation": violation.kind.name, "apnsId": violation.id.description, "sentence": violation.kind.rawValue,
        "detail": violation.detail, "steps": timeline.steps.map(timelines.json),
      ]).text
    }
    let outcomes = Outcome.allCases.compactMap { outcome in findings.outcomes[outcome].map { JSONValue.Member("\(outcome)", $0) } }
    let kinds = Violation.Kind.allCases.compactMap { kind in findings.counts[kind].map { JSONValue.Member(kind.name, $0) } }
    let summary = JSONValue.object([
      "violations": findings.violationCount, "requests": findings.requests, "records": findings.records, "journal": findings.journal,
      "events": findings.events, "deadLetters": findings.deadLetters, "derived": findings.derived,
      "repeats": findings.repeats, "known": findings.known, "staleDropped": findings.staleDropped,
      "acknowledgedLate": findings.acknowledgedLate, "unreadable": findings.unreadable, "untold": findings.untold,
      "forgotten": report.forgotten, "spilledBytes": report.spilled,
      "outcomes": JSONValue.object(outcomes).appending(["inFlight": findings.inFlight, "lost": findings.lost]),
      "kinds": JSONValue.object(kinds),
    ])
    lines.append(summary.text)
    return lines
  }
}
