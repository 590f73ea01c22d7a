import Ingress
import JSON
import Kafka
import Notifications
import Operations
import Worker

/// `carillon pending`.
enum PendingCommand {
  private static let target = Setting<Name?>("pending.target", .target, "Only what waits for this target.")
  private static let app = Setting<Name?>("pending.app", .name("BUNDLE-ID"), "Only what waits for this application.")

  private static let cancels = Setting(
    "pending.cancel", .boolean, default: false,
    "Cancels all that waits for the application of --app: publishes a cancel of all for each target.")

  static let command = Command(
    "pending", "lists what waits for its time, or cancels it",
    discussion:
      "Prints a line for each request whose trigger is due at a time: when it is due next, its target, its application, its identifier, what its trigger is, and its apns-id, which 'explain' takes. What is due first comes first. It reads the topic schedule. With --json each is an object, with the due time in each zone, the trigger and the payload as published. With --cancel it publishes a cancel of all for each target that it finds, and prints their apns-ids. The exit code is 1 when nothing waits.",
    groups: [SettingGroup("List", [target, app, cancels]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [
      Example("pending", "all of it"), Example("pending --target user:ada --app com.example.shop --json", "what waits for a person"),
      Example("pending --app com.example.shop --cancel", "ends all of an application"),
    ]
  ) { values in
    guard !values[cancels] || values[app] != nil else {
      throw UsageError(.contradiction, "--cancel is about one application: give it by --app")
    }
    let entries = try await ReadingLog.with(values, "pending", needing: \.schedule) {
      try await $0.pendingSchedules(target: values[target], application: values[app])
    }
    if entries.isEmpty { StandardError.line("nothing waits for its time") }
    if values[cancels] { return try await cancel(entries, values) }
    for entry in entries {
      if values[AnswerSettings.json] { StandardOutput.json(object(entry).text) } else { StandardOutput.line(text(entry)) }
    }
    return entries.isEmpty ? .answerIsNo : .done
  }

  /// The requests that cancel all that these wait for: one for each application and target.
  static func cancels(of entries: [PendingSchedule]) -> [RequestToSend] {
    var seen: Set<[Name]> = []
    return entries.filter { seen.insert([$0.key.application, $0.key.target]).inserted }.enumerated().flatMap { number, entry in
      var draft = RequestDraft()
      (draft.target, draft.removesAll) = (entry.key.target, true)
      draft.headers[RequestHeader.topic] = entry.key.application.text
      draft.headers[RequestHeader.operation] = "cancel"
      return draft.records(line: number + 1)
    }
  }

  private static func cancel(_ entries: [PendingSchedule], _ values: SettingValues) async throws -> ExitCode {
    guard !entries.isEmpty else { return .answerIsNo }
    StandardOutput.whenItFails(.useStandardError)
    let kafka = try ClusterSettings.kafka(values, client: "carillon-pending")
    let topic = ClusterSettings.topics(values).requests
    let batches = try await Admin.with(kafka) { try await $0.writeLimits(of: [topic], at: kafka) }
    let timeout = 30_000
    return try await ReadingLog.with(kafka, loop: "cancel") { loop, _ in
      let lane = PublishLane(on: loop, topic: topic, isJSON: values[AnswerSettings.json])
      try await lane.start(kafka, batchBytes: batches.batchBytes(of: topic), timeoutMilliseconds: timeout)
      await lane.publish(cancels(of: entries))
      let totals = await lane.finish(withinMilliseconds: timeout + 2_000)
      if let failure = totals.failure {
        throw Failure(.dependencyMissing, "\(failure): the cancel of \(totals.failed) did not reach Kafka")
      }
      let whose = "\(TerminalText.count(entries.count, "request")) of \(TerminalText.count(totals.acknowledged, "target"))"
      StandardError.line("the cancel of \(whose) is published; the workers end them, and events say which")
      return .done
    }
  }

  private static func text(_ entry: PendingSchedule) -> String {
    let words = [
      Timestamp.text(entry.due), TerminalText.visible(entry.key.target), TerminalText.visible(entry.key.application),
      TerminalText.visible(entry.key.identifier), kind(entry), entry.record.newest.id.description,
    ]
    return words.joined(separator: "  ")
  }

  private static func kind(_ entry: PendingSchedule) -> String {
    guard let trigger = entry.pending.timedTrigger else { return "unreadable" }
    let kind =
      switch trigger.rule {
      case .interval: "timeInterval"
      case .calendar: "calendar"
      }
    return trigger.repeats ? "\(kind), repeats" : kind
  }

  private static func object(_ entry: PendingSchedule) -> JSONValue {
    let pending = entry.pending
    let times = pending.dueTimes.filter { !$0.isOver }.sorted { $0.due < $1.due }.map { time in
      JSONValue.object(["due": Timestamp.text(time.due), "zone": time.zone == "" ? nil : time.zone])
    }
    let key = entry.key
    return .object([
      "apnsId": entry.record.newest.id.description, "application": key.application, "target": key.target, "identifier": key.identifier,
      "due": Timestamp.text(entry.due), "dueTimes": times, "requested": Timestamp.text(pending.requested),
      "lifetimeSeconds": pending.lifetime, "trigger": json(pending.trigger), "payload": json(pending.payload),
    ])
  }

  private static func json(_ bytes: [UInt8]) -> JSONValue { bytes.withUnsafeBytes { try? JSONValue(parsing: $0) } ?? .null }
}
