import EventLoop
import Operations
import Worker

/// `carillon audit`.
enum AuditCommand {
  private static let from = Setting<Moment?>("audit.from", .past, "Requests published from this time on. Absent: all in the topic.")
  private static let to = Setting<Moment?>("audit.to", .past, "Requests published before this time. Absent: up to now.")
  private static let grace = Setting(
    "audit.grace", .duration(.zero...(.seconds(86_400))), default: .seconds(30),
    "A request of at most this age without an outcome is in flight, and not lost.")
  private static let takeover = Setting(
    "audit.takeover", .duration(.zero...(.seconds(86_400))), default: .seconds(180),
    "How long an acknowledgement may take, and a session to find missed notifications: at least --refresh and --acknowledge of the fan-out together."
  )
  private static let isPendingAllowed = Setting(
    "audit.pending", .boolean, default: true, "With --no-pending a request that still waits for its device is a violation.")
  private static let limit = Setting(
    "audit.limit", .integer(0...10_000), default: 20, "Maximum number of violations with a timeline; further ones are only counted.")
  private static let spill = Setting<String?>(
    "audit.spill", .folder,
    "The folder for a range that does not fit into memory, about 630 bytes for a request to one device. Absent: $TMPDIR, else /tmp.")

  static let command = Command(
    "audit", "proves that no request was lost, shown twice, late or stale, or shows where",
    discussion:
      "Reads the requests of a range, and all events and journal entries on them up to now, and checks the guarantees. Each request ended in one of the allowed ways on each of its devices. None was shown twice, after its end, or after a newer one of the same identifier. Each outcome collapsed, expired, duplicate or unregistered was true. Each response arrived once. The requests beyond the rate limit of their application were rejected for that, and no others. No occurrence of a schedule fired early, twice, after the end of its schedule, or behind a gap. Prints how the requests ended, and each violation with its records. The exit code is 1 if there is a violation. With --json each violation is an object, and the last one has the counts. Memory is bounded for any range: a large one is stored on disk.",
    groups: [
      SettingGroup("Audit", [from, to, isPendingAllowed], advanced: [grace, takeover, limit, spill]), AnswerSettings.group,
      RequestSettings.group, ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("audit --from 1h", "the last hour"),
      Example("audit --from 2026-01-31T00:00:00Z --to 2026-02-01T00:00:00Z --json", "a day, for a script"),
      Example("audit --no-pending --grace 0", "after a test whose devices are all connected"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let kafka = try ClusterSettings.kafka(values, client: "carillon-audit")
    var settings = AuditSettings()
    settings.published = try TimeRange(values, from: from, to: to, now: WallClock.milliseconds())
    settings.grace = Int64(values[grace].wholeMilliseconds)
    settings.takeover = Int64(values[takeover].wholeMilliseconds)
    settings.forbidsPending = !values[isPendingAllowed]
    settings.limit = values[limit]
    settings.spillFolder = values.spillFolder(spill)
    let report = try await ReadingLog.with(kafka, RequestRules(values), loop: "audit") { try await $0.audit(settings) }
    let printer = AuditPrinter(timelines: TimelinePrinter(prefix: values[ClusterSettings.topicPrefix]))
    if values[AnswerSettings.json] {
      for line in printer.json(report) { StandardOutput.json(line) }
    } else {
      for line in printer.text(report) { StandardOutput.line(line) }
    }
    return report.findings.violationCount == 0 ? .done : .answerIsNo
  }
}
