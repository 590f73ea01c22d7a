import EventLoop
import JSON
import Notifications
import Operations
import Worker

/// `carillon explain`.
enum ExplainCommand {
  private static let id = Argument(
    "APNS-ID", "The request's apns-id in upper or lower case, or what its producer wrote instead. Absent: see --user.", count: .optional)
  private static let target = Setting<Name?>(
    "explain.target", .target,
    "The request's target, if it is known: its requests lie in one partition, which is read first. Without APNS-ID: the latest requests with this target, for a person as with --user."
  )
  private static let user = Setting<Name?>(
    "explain.user", .name("ID"),
    "Without APNS-ID: the latest requests for this person, and for the devices that are registered for it now.")
  private static let app = Setting<Name?>("explain.app", .name("BUNDLE-ID"), "With --user or --target: only those of this application.")
  private static let limit = Setting(
    "explain.limit", .integer(1...1000), default: 20, "With --user or --target: maximum number of requests.")
  private static let from = Setting<Moment?>("explain.from", .past, "The earliest time of publication.")
  private static let to = Setting<Moment?>("explain.to", .past, "The latest time of publication.")

  static let command = Command(
    "explain", "shows how a request ended, or a person's latest requests",
    discussion:
      "Prints the request's timeline, one step a line: the time, the time since the step above and since the publication, the step's name, the device, the topic, partition and offset of its record, the worker, and details. Then follows the state at each device. For a request that waits for its time it says when it is due next or how its schedule ended, and lists the occurrences; for an occurrence it names the request that scheduled it. Without a hint it searches the topics backwards from their newest records; with --target or a time only a part of them. With --user or --target instead of APNS-ID the latest requests are listed with their times and states, the newest first. With --json each request is one object. The exit code is 1 if nothing was found.",
    arguments: [id],
    groups: [
      SettingGroup("Search", [target, user, app, limit, from, to]), AnswerSettings.group, RequestSettings.group,
      ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("explain 6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11", "everything about one request"),
      Example("explain 6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11 --from 2026-01-31T12:00:00Z --json", "in a large cluster, for a script"),
      Example("explain --user ada --app com.example.shop --from 1d", "what a person was sent since yesterday"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let now = WallClock.milliseconds()
    let question = try question(values)
    let published = try TimeRange(values, from: from, to: to, now: now)
    let kafka = try ClusterSettings.kafka(values, client: "carillon-explain")
    let result = try await ReadingLog.with(kafka, RequestRules(values), loop: "explain") {
      try await $0.explain(question, target: values[target], published: published)
    }
    let printer = TimelinePrinter(prefix: values[ClusterSettings.topicPrefix], width: Terminal.width)
    for explanation in result.explanations {
      if values[AnswerSettings.json] {
        StandardOutput.json(printer.json(explanation, searched: result.searched).text)
      } else if values[id].isEmpty {
        StandardOutput.line(printer.summary(explanation))
      } else if explanation.isFound {
        for line in printer.text(explanation) { StandardOutput.line(line) }
      }
    }
    if let sentence = ForgottenRecords.sentence(result.forgotten) { StandardError.line(sentence) }
    guard result.explanations.contains(where: \.isFound) else {
      StandardError.line(ForgottenRecords.nothing(about: question.subject, forgotten: result.forgotten))
      for place in result.searched { StandardError.plain("  \(place)") }
      return .answerIsNo
    }
    return .done
  }

  private static func question(_ values: SettingValues) throws(UsageError) -> RequestQuestion {
    if let text = values[id].first {
      guard values[user] == nil, values[app] == nil else {
        throw UsageError(.contradiction, "--user and --app list requests: give them, or an APNS-ID")
      }
      return NotificationID(text).map { .request($0) } ?? .written(text)
    }
    guard values[user] == nil || values[target] == nil else {
      throw UsageError(.contradiction, "--user is a target already: give it, or --target")
    }
    guard let target = values[user].map({ "user:\($0)" }) ?? values[target] else {
      throw UsageError(.missing, "which request? give its APNS-ID, or --user ID for a person's latest ones")
    }
    return .latest(target, application: values[app], limit: values[limit])
  }
}

extension RequestQuestion {
  /// The question in words for a person.
  fileprivate var subject: String {
    switch self {
    case .request(let id): id.description
    case .written(let text): "'\(TerminalText.visible(text))', which is not an apns-id"
    case .latest(let target, _, _): "requests for \(TerminalText.visible(target))"
    }
  }
}
