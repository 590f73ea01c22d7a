import JSON
import Notifications
import Operations
import Worker

/// The stops and rate limits of applications, and what they were granted, for a person or for a program.
struct ApplicationPrinter {
  /// Milliseconds since 1970.
  let now: Int64

  /// The present state of an application.
  func line(_ application: Name, _ stops: ApplicationStops) -> String {
    guard let last = stops.stops.last else { return "\(application)  was never stopped" }
    return "\(application)  \(text(last))"
  }

  /// What an application was granted.
  func grantLine(_ application: Name, _ stops: ApplicationStops) -> String {
    guard !stops.granted.isEmpty else { return "\(application)  may send neither critical nor time-sensitive notifications" }
    let levels = [(GrantedLevels.critical, "critical"), (.timeSensitive, "time-sensitive")].filter { stops.granted.contains($0.0) }
    return "\(application)  may send \(levels.map(\.1).joined(separator: " and ")) notifications"
  }

  /// The present limit of an application.
  func limitLine(_ application: Name, _ stops: ApplicationStops) -> String {
    guard let last = stops.limits.periods.last else { return "\(application)  has no rate limit" }
    return limitLine(application, last)
  }

  private func limitLine(_ application: Name, _ period: LimitPeriod) -> String {
    let since = "from \(Timestamp.text(period.from)), by \(TerminalText.visible(period.by))"
    guard let limit = period.limit else { return "\(application)  has no rate limit, \(since)" }
    return "\(application)  limited to \(limit.words), \(since)"
  }

  /// The lines of a list: of each application the stop and the limit that go on, or all, the newest first; and what it was granted.
  func lines(_ entry: ApplicationEntry, showsAll: Bool) -> [String] {
    let stops = showsAll ? entry.stops.stops.reversed() : entry.stops.open.map { [$0] } ?? []
    let grants = entry.stops.granted.isEmpty ? [] : [grantLine(entry.application, entry.stops)]
    let periods = entry.stops.limits.periods
    let limits = showsAll ? periods.reversed() : periods.suffix(1).filter { $0.limit != nil }
    return stops.map { "\(entry.application)  \(text($0))" } + limits.map { limitLine(entry.application, $0) } + grants
  }

  private func text(_ stop: ApplicationStop) -> String {
    let reason = stop.reason.map { ": \(TerminalText.visible($0))" } ?? ""
    let by = TerminalText.visible(stop.by)
    guard let to = stop.to else {
      return "stopped since \(Timestamp.text(stop.from)) (\(duration(now - stop.from))) by \(by)\(reason)"
    }
    let ended = stop.endedBy.map { " by \(TerminalText.visible($0))" } ?? ""
    return "was stopped from \(Timestamp.text(stop.from)) by \(by) to \(Timestamp.text(to))\(ended) (\(duration(to - stop.from)))\(reason)"
  }

  // MARK: An application without requests

  /// Warns that no request of an application was seen.
  func warning(_ application: Name, _ sighting: ApplicationSighting, isDryRun: Bool) -> [String] {
    let place = sighting.since == nil ? "among the newest \(TerminalText.count(sighting.requests, "request"))" : "in the last hour"
    var lines = ["no request of \(application) was seen \(place)" + Suggestion.question(nearest(application, sighting))]
    if !isDryRun { lines.append("if the name is wrong, 'carillon applications start \(application)' ends the stop") }
    return lines
  }

  /// An application with a similar name, which was probably meant; nil if this one was seen, or if there is none.
  private func nearest(_ application: Name, _ sighting: ApplicationSighting) -> String? {
    sighting.isSeen
      ? nil : Suggestion.nearest(to: application.text, in: sighting.others.map(\.text), atMost: Self.misspeltLetters)
  }

  /// The names of a team's applications begin alike, so few letters may differ.
  private static let misspeltLetters = 2

  private func duration(_ milliseconds: Int64) -> String { TerminalText.duration(max(0, milliseconds)) }

  /// An application with all stops and limits, or only its present ones.
  func json(
    _ application: Name, _ stops: ApplicationStops, showsAll: Bool = true, changed: Bool? = nil, contested: Bool = false,
    _ sighting: ApplicationSighting? = nil
  ) -> JSONValue {
    let periods = showsAll ? stops.limits.periods : stops.limits.periods.suffix(1)
    return .object(present: [
      "application": application, "state": stops.open == nil ? "started" : "stopped", "changed": changed,
      "contested": contested ? true : nil, "seen": sighting?.isSeen, "requestsLookedAt": sighting?.requests,
      "nearest": sighting.flatMap { nearest(application, $0) }, "allowed": stops.granted.isEmpty ? nil : stops.granted.names,
      "limits": periods.isEmpty ? nil : periods.map(json), "stops": (showsAll ? stops.stops : stops.open.map { [$0] } ?? []).map(json),
    ])
  }

  private func json(_ period: LimitPeriod) -> JSONValue {
    .object(["from": Timestamp.text(period.from)]).appending(contentsOf: period.limit.map(Self.json) ?? [:]).appending(["by": period.by])
  }

  /// The members of a limit.
  static func json(_ limit: RateLimit) -> JSONValue {
    .object(present: ["perTarget": limit.perTarget, "perApplication": limit.perApplication, "windowMilliseconds": limit.window])
  }

  private func json(_ stop: ApplicationStop) -> JSONValue {
    .object(present: [
      "from": Timestamp.text(stop.from), "to": stop.to.map(Timestamp.text), "by": stop.by, "reason": stop.reason, "endedBy": stop.endedBy,
    ])
  }
}
