import JSON
import Kafka
import Notifications
import Operations
import Worker

/// `carillon pending`.
enum PendingCommand {
  private static let target = Setting<Name?>("pending.target", .target, "Only what waits for this target.")
  private static let app = Setting<Name?>("pending.app", .name("BUNDLE-ID"), "Only what waits for this application.")

  static let command = Command(
    "pending", "lists what waits for its time",
    discussion:
      "Prints a line for each request whose trigger is due at a time: when it is due next, its target, its application, its identifier, what its trigger is, and its apns-id, which 'explain' takes. What is due first comes first. It reads the topic schedule. With --json each is an object, with the due time in each zone, the trigger and the payload as published. The exit code is 1 when nothing waits.",
    groups: [SettingGroup("List", [target, app]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [
      Example("pending", "all of it"), Example("pending --target user:ada --app com.example.shop --json", "what waits for a person"),
    ]
  ) { values in
    let kafka = try ClusterSettings.kafka(values, client: "carillon-pending")
    let topics = ClusterSettings.topics(values)
    _ = try await Admin.with(kafka) { admin in try await admin.partitions(of: topics.schedule, at: kafka) }
    let entries = try await ReadingLog.with(kafka, loop: "pending") { loop, log in
      let schedules = PendingSchedules(on: loop, kafka, topics) {
        log.report($0)
      } onUnreadable: { place in
        let position = place.position
        StandardError.line("\(place.topic), partition \(position.partition), offset \(position.offset) says nothing of a schedule")
      }
      return try await schedules.read(target: values[target], application: values[app])
    }
    for entry in entries {
      if values[AnswerSettings.json] { StandardOutput.json(object(entry).text) } else { StandardOutput.line(text(entry)) }
    }
    if entries.isEmpty { StandardError.line("nothing waits for its time") }
    return entries.isEmpty ? .answerIsNo : .done
  }

  private static func text(_ entry: PendingSchedules.Entry) -> String {
    let words = [
      Timestamp.text(entry.due), TerminalText.visible(entry.key.target), TerminalText.visible(entry.key.application),
      TerminalText.visible(entry.key.identifier), kind(entry), entry.record.newest.id.description,
    ]
    return words.joined(separator: "  ")
  }

  private static func kind(_ entry: PendingSchedules.Entry) -> String {
    guard let trigger = entry.pending.timedTrigger else { return "unreadable" }
    let kind =
      switch trigger.rule {
      case .interval: "timeInterval"
      case .calendar: "calendar"
      }
    return trigger.repeats ? "\(kind), repeats" : kind
  }

  private static func object(_ entry: PendingSchedules.Entry) -> JSONValue {
    let pending = entry.pending
    let times = pending.dueTimes.filter { !$0.isOver }.sorted { $0.due < $1.due }.map { time in
      JSONValue.object([
        .init(key: "due", value: .string(Timestamp.text(time.due))),
        .init(key: "zone", value: time.zone == "" ? .null : .string(time.zone.text)),
      ])
    }
    return .object([
      .init(key: "apnsId", value: .string(entry.record.newest.id.description)),
      .init(key: "application", value: .string(entry.key.application.text)),
      .init(key: "target", value: .string(entry.key.target.text)),
      .init(key: "identifier", value: .string(entry.key.identifier.text)),
      .init(key: "due", value: .string(Timestamp.text(entry.due))), .init(key: "dueTimes", value: .array(times)),
      .init(key: "requested", value: .string(Timestamp.text(pending.requested))),
      .init(key: "lifetimeSeconds", value: .integer(pending.lifetime)), .init(key: "trigger", value: json(pending.trigger)),
      .init(key: "payload", value: json(pending.payload)),
    ])
  }

  private static func json(_ bytes: [UInt8]) -> JSONValue { bytes.withUnsafeBytes { try? JSONValue(parsing: $0) } ?? .null }
}
