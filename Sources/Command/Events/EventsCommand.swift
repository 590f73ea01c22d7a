import EventLoop
import Kafka
import Notifications
import Operations
import Worker

/// `carillon events`.
enum EventsCommand {
  static let from = Setting(
    "events.from", .eventsStart, default: .now, "Where reading begins.")
  private static let types = Setting<[Outcome]>(
    "events.type", .repeated(.eventType), default: [], "Only events of these types. Absent: all.")
  private static let device = Setting<DeviceToken?>("events.device", .deviceToken, "Only events on this device.")
  private static let id = Setting<NotificationID?>("events.id", .notificationID, "Only events of the request with this apns-id.")
  private static let user = Setting<Name?>(
    "events.user", .name("ID"),
    "Only events of this person: those that name the person, those of requests for the person, and those on the person's registered devices."
  )
  private static let app = Setting<Name?>("events.app", .name("BUNDLE-ID"), "Only events of this application.")
  private static let limit = Setting<Int?>("events.limit", .integer(1...Int(Int32.max)), "Ends after this many events.")
  private static let idle = Setting<Duration?>(
    "events.until-idle", .duration(.milliseconds(100)...(.seconds(86_400))), "Ends after this time without events.")

  static let command = Command(
    "events", "follows what happens to requests and devices",
    discussion:
      "Prints events until it is ended, one a line (a narrow terminal gets several). Those of one device are in their order, and older ones are ordered by their times. A line has the time, the type, the request, the device, and the event's other members. With --json each is its value with the CloudEvents attributes (ce_…) and the record's partition and offset. The exit code is 1 if --until-idle ended it without an event.",
    groups: [SettingGroup("Events", [from, types, device, user, app, id, limit, idle]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [
      Example("events", "what happens from now on"),
      Example("events --user ada --app com.example.shop", "what happens to one person, from now on"),
      Example("events --from 1h --type rejected,expired", "what went wrong in the last hour, and goes on to"),
      Example(
        "events --from beginning --id 6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11 --until-idle 2s --json",
        "for a script: everything about one request"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let kafka = try ClusterSettings.kafka(values, client: "carillon-events")
    let topics = ClusterSettings.topics(values)
    let topic = topics.events
    var filter = filter(values)
    let positions = try await Admin.with(kafka) { admin in
      let partitions = try await admin.partitions(of: topic, at: kafka)
      switch values[from] {
      case .beginning: return partitions.map { ($0, StartPosition.earliest) }
      case .now: return partitions.map { ($0, StartPosition.latest) }
      case .time(let moment):
        let time = moment.before(now: WallClock.milliseconds())
        filter.since = time
        return try await admin.positions(of: partitions, at: time)
      }
    }
    if StandardError.isTerminal, values[limit] == nil, values[idle] == nil {
      StandardError.line("follows what happens until Ctrl-C ends it")
    }
    let wanted = filter
    let count = try await ReadingLog.with(kafka, RequestRules(topics: topics), loop: "events") { tool in
      var filter = wanted
      if let user = values[user] { filter.person = (user, try await tool.devices(of: user, values[app])) }
      return try await tool.follow(
        positions, filter, isJSON: values[AnswerSettings.json], limit: values[limit], idleMilliseconds: values[idle]?.wholeMilliseconds)
    }
    return count > 0 ? .done : .answerIsNo
  }

  static func filter(_ values: SettingValues) -> EventFilter {
    EventFilter(
      types: Set(values[types].compactMap { $0.cloudEventsType?.description }), device: values[device]?.text, id: values[id]?.description,
      application: values[app])
  }
}

/// Where reading of events begins.
enum EventsStart: Sendable, Hashable {
  case beginning, now
  case time(Moment)
}

extension SettingKind where Value == EventsStart {
  fileprivate static var eventsStart: SettingKind {
    SettingKind(
      placeholder: "beginning|now|TIME",
      allowed: "beginning, now, a time such as 2026-01-31T12:00:00Z, or how long ago, such as 30s, 10m, 2h or 1d",
      read: { text in
        switch text {
        case "beginning": .beginning
        case "now": .now
        default: Moment(past: text).map { .time($0) }
        }
      },
      write: { start in
        switch start {
        case .beginning: "beginning"
        case .now: "now"
        case .time(let moment): moment.text
        }
      })
  }
}

extension SettingKind where Value == Outcome {
  fileprivate static var eventType: SettingKind {
    SettingKind(
      placeholder: "TYPE,…", allowed: "one of " + Outcome.events.map(\.name).joined(separator: ", "),
      completion: .words(Outcome.events.map(\.name)), read: { Outcome(name: $0) }, write: \.name)
  }
}

extension SettingKind where Value == NotificationID {
  /// An apns-id.
  static var notificationID: SettingKind {
    SettingKind(
      placeholder: "UUID", allowed: "an apns-id: 8-4-4-4-12 hexadecimal digits", read: { NotificationID($0) },
      write: \.description)
  }
}

extension Admin {
  /// The positions of records from a time on. On the embedded broker, which does not find them, it is the beginning.
  fileprivate func positions(of partitions: [TopicPartition], at milliseconds: Int64) async throws(KafkaError) -> [(
    TopicPartition, StartPosition
  )] {
    // It would answer with the end, or with any offset.
    if try await isEmbeddedBroker() { return partitions.map { ($0, .earliest) } }
    let offsets = try await offsets(of: partitions, at: milliseconds)
    return partitions.map { ($0, offsets[$0].map { .offset($0) } ?? .earliest) }
  }
}
