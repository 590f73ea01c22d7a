import EventLoop
import JSON
import Kafka
import Notifications
import Operations
import Worker

/// `carillon explain`.
enum ExplainCommand {
  private static let id = Argument("APNS-ID", "The request's apns-id.")
  private static let target = Setting<String?>(
    "explain.target", .target,
    "The request's target, if it is known: the events of device:TOKEN lie in one partition, which is read first.")
  private static let around = Setting<Moment?>(
    "explain.around", .past, "About when it was published: within five minutes before and after.")
  private static let from = Setting<Moment?>("explain.from", .past, "When it was published at the earliest.")
  private static let to = Setting<Moment?>("explain.to", .past, "When it was published at the latest.")

  /// How far from `--around` is searched, in milliseconds.
  private static let reach: Int64 = 5 * 60_000

  static let command = Command(
    "explain", "says what became of a request",
    discussion:
      "Prints the request's timeline, a step a line: when, how long after the step before and after its publication, what, on which device, in which topic, partition and offset it is written, which worker told it, and what else there is to say; then how it stands with each device. Without a hint the topics are searched from their newest records back; with --target or a time only a part of them. With --json it is one object. The exit code is 1 when nothing was found.",
    arguments: [id],
    groups: [
      SettingGroup("Search", [target, around, from, to]), AnswerSettings.group, RequestSettings.group, ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("explain 6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11", "everything about one request"),
      Example("explain 6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11 --around 2026-01-31T12:00:00Z --json", "in a large cluster, for a script"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let text = values[id].first ?? ""
    guard let id = NotificationID(text) else {
      throw UsageError(
        .wrongValue, "'\(TerminalText.visible(text))' is no apns-id: that is a UUID, 8-4-4-4-12 lower-case hexadecimal digits")
    }
    let now = WallClock.milliseconds()
    let hints = SearchHints(target: values[target], published: try published(values, now: now))
    let kafka = try ClusterSettings.kafka(values, client: "carillon-explain")
    let loop = EventLoop(name: "explain")
    let log = ReadingLog()
    let explainer = Explainer(on: loop, kafka, RequestRules(values)) { log.say($0) }
    let explanation: Explanation
    do {
      explanation = try await explainer.explain(id, hints)
    } catch let error as KafkaError {
      throw kafka.failure(error)
    }
    await loop.close()
    let printer = TimelinePrinter(prefix: values[ClusterSettings.topicPrefix])
    if values[AnswerSettings.json] {
      StandardOutput.line(printer.json(explanation).text)
    } else if explanation.isFound {
      for line in printer.text(explanation, now: now) { StandardOutput.line(line) }
    }
    guard explanation.isFound else {
      StandardError.line("there is nothing about \(id); searched:")
      for place in explanation.searched { StandardError.plain("  \(place)") }
      return .answerIsNo
    }
    return .done
  }

  private static func published(_ values: SettingValues, now: Int64) throws(UsageError) -> TimeRange {
    var range = TimeRange(from: values[from]?.before(now: now), to: values[to]?.before(now: now))
    if let around = values[around]?.before(now: now) {
      guard range == TimeRange() else { throw UsageError(.contradiction, "--around is a range already: give it, or --from and --to") }
      range = TimeRange(from: around - reach, to: around + reach)
    }
    if let from = range.from, let to = range.to, from >= to { throw UsageError(.contradiction, "--from must lie before --to") }
    return range
  }
}

extension RequestRules {
  /// As the settings of a cluster's workers say.
  init(_ values: SettingValues) {
    let payload = values[RequestSettings.payloadBytes]
    self.init(
      topics: ClusterSettings.topics(values),
      limits: RequestLimits(
        payloadBytes: payload, voipPayloadBytes: max(payload, 5120),
        longestLifetime: Int64(values[RequestSettings.longestLifetime].wholeMilliseconds / 1000)),
      oneAttemptSeconds: Int64(values[RequestSettings.oneAttempt].wholeMilliseconds / 1000))
  }
}

extension SettingKind where Value == String {
  /// Whom a request is for.
  fileprivate static var target: SettingKind {
    SettingKind(
      placeholder: "TARGET", allowed: "device:TOKEN or user:ID",
      read: { text in
        let isTarget = text.hasPrefix("device:") ? DeviceToken(String(text.dropFirst(7))) != nil : text.hasPrefix("user:") && text.count > 5
        return isTarget ? text : nil
      }, write: { $0 })
  }
}

extension SettingKind where Value == Moment {
  /// A time, or how long ago.
  static var past: SettingKind {
    SettingKind(
      placeholder: "TIME", allowed: "a time such as 2026-01-31T12:00:00Z, or how long ago, such as 30s, 10m, 2h or 1d",
      read: { Moment(past: $0) }, write: \.text)
  }
}
