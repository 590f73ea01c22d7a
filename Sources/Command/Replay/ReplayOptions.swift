import JSON
import Notifications
import Operations
import Worker

/// The settings of `carillon replay`.
enum ReplayOptions {
  /// A topic by the end of its name.
  enum Topic: String, CaseIterable, Sendable {
    case requests, events, deliveries, devices, schedule, journal, applications, people, categories
    case deadLetters = "dead-letters"

    /// Why its records are not replayed; nil if they are.
    var refusal: String? {
      switch self {
      case .requests, .events: nil
      case .deliveries:
        "deliveries are worthless when their lane has read them: what was not delivered is in the mailboxes; replay requests"
      case .devices: "an older registration would take the place of the newest one: 'carillon rebuild' applies the registrations again"
      case .schedule:
        "an older time would take the place of the newest one, or bring back what has fired or was canceled: replay the requests that wait there"
      case .journal: "the journal tells of offsets of the requests, and told twice it tells nothing new: replay requests"
      case .applications: "the newest record of an application tells all of its stops: 'carillon applications' writes the next"
      case .people: "older settings would take the place of a person's newest ones"
      case .categories: "older categories would take the place of the newest ones: 'carillon categories publish' writes them"
      case .deadLetters: "dead letters go back into the pipeline one by one, when their cause is mended: replay requests otherwise"
      }
    }
  }

  static let topic = Setting(
    "replay.topic", .choice, default: Topic.requests, "The topic to replay: requests, or events into another topic.")
  static let into = Setting<String?>("replay.into", .string("TOPIC"), "With --topic events: the topic that they are written to.")
  static let from = Setting<Moment?>("replay.from", .past, "Records published from this time on.")
  static let to = Setting<Moment?>("replay.to", .past, "Records published before this time. Absent: up to now.")
  static let partitions = Setting("replay.partitions", .repeated(.integer(0...99_999)), default: [], "Only these partitions.")
  static let offsets = Setting(
    "replay.offsets", .repeated(.offsets), default: [],
    "Only these offsets of a partition, without the last one.")
  static let app = Setting<Name?>("replay.app", .name("BUNDLE-ID"), "Only requests of this application.")
  static let target = Setting<Name?>("replay.target", .target, "Only requests with this target.")
  static let id = Setting<String?>("replay.id", .string("APNS-ID"), "Only the request of this apns-id.")
  static let collapseID = Setting<Name?>("replay.collapse-id", .name("ID"), "Only requests with this collapse id.")
  static let pushType = Setting<String?>(
    "replay.push-type", .string("TYPE"), "Only requests of this push type, also where they leave it to their payload.")
  static let values = Setting(
    "replay.where", .repeated(.payloadValue, splitsAtCommas: false), default: [],
    "Only requests whose payload has this value at this place (RFC 6901); several must all match.")
  static let isOfUnfinished = Setting(
    "replay.only-unfinished", .boolean, default: false,
    "Only requests that have at one of their devices neither an outcome nor an entry in its mailbox, as new work. It needs Redis."
  )
  static let grace = Setting(
    "replay.grace", .duration(.zero...(.seconds(86_400))), default: .seconds(30),
    "With --only-unfinished: a request of at most this age is in flight, and not unfinished.")
  static let spill = Setting<String?>(
    "replay.spill", .folder, "With --only-unfinished: the folder for facts that do not fit into memory. Absent: $TMPDIR, else /tmp.")
  static let isDryRun = Setting(
    "replay.dry-run", flag: "dry-run", .boolean, default: false, "Reads everything and writes nothing: shows how much there is to replay.")
  static let isNew = Setting(
    "replay.as-new", .boolean, default: false,
    "Makes new requests, with new ids and without the first place, so they are newer than all before. Notifications that were shown already are shown again, and replace newer ones."
  )
  static let records = Setting(
    "replay.records-per-second", .integer(0...100_000_000), default: 1_000,
    "Maximum records written in a second; 0: as many as Kafka takes.")
  static let bytes = Setting(
    "replay.bytes-per-second", .size(0...(1 << 40)), default: 8 << 20,
    "Maximum bytes of keys and values written in a second; 0: any number.")
  static let maximumBehind = Setting(
    "replay.max-behind", .duration(.zero...(.seconds(86_400))), default: .seconds(2),
    "It waits while the transform workers are behind by more than this, so that live requests need not wait; 0: it never waits.")
  static let state = Setting<String?>(
    "replay.state", .file, "The file with its progress. Absent: carillon-replay-RUN.json in the current folder, removed at the end.")
  static let resume = Setting<String?>(
    "replay.resume", .file, "Continues an interrupted replay, whose file has the range and the conditions.")
  static let skipsGone = Setting(
    "replay.skip-gone", .boolean, default: false, "With --resume: skips records that Kafka has deleted meanwhile.")

  static let range = SettingGroup("Range", [topic, into, from, to, partitions, offsets])
  static let conditions = SettingGroup("Conditions", [isOfUnfinished, app, target, id, values], advanced: [collapseID, pushType])
  static let way = SettingGroup(
    "Replay", [isDryRun, records, maximumBehind, resume], advanced: [isNew, bytes, state, skipsGone, grace, spill, TransformOptions.group])

  /// The filter for the requests.
  static func filter(_ values: SettingValues) throws(UsageError) -> ReplayFilter {
    var filter = ReplayFilter()
    filter.fields[.application] = values[app]
    filter.fields[.target] = values[target]
    filter.fields[.collapseID] = values[collapseID]
    if let text = values[id] {
      guard let id = NotificationID(text) else {
        throw UsageError(.wrongValue, "--id takes a UUID: 8-4-4-4-12 hexadecimal digits, and not '\(PrintedText.echo(text))'")
      }
      filter.fields[.id] = Name(id.description)
    }
    if let text = values[pushType] {
      let types = PushType.allCases.map(\.name.description)
      guard types.contains(text) else {
        throw UsageError(
          .wrongValue, "--push-type takes one of \(types.joined(separator: ", ")), and not '\(PrintedText.echo(text))'")
      }
      filter.fields[.pushType] = Name(text)
    }
    filter.values = values[Self.values]
    return filter
  }
}

extension SettingKind where Value == (partition: Int32, offsets: Range<Int64>) {
  /// `PARTITION:FROM-TO`.
  fileprivate static var offsets: SettingKind {
    SettingKind(
      placeholder: "PARTITION:FROM-TO", allowed: "PARTITION:FROM-TO, such as 3:1000-2000",
      read: { text in
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let partition = Int32(parts[0]), partition >= 0 else { return nil }
        let ends = parts[1].split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
        guard ends.count == 2, let from = ends[0], let to = ends[1], from >= 0, from < to else { return nil }
        return (partition, from..<to)
      }, write: { "\($0.partition):\($0.offsets.lowerBound)-\($0.offsets.upperBound)" })
  }
}

extension SettingKind where Value == ReplayFilter.PayloadValue {
  /// `POINTER=VALUE`.
  fileprivate static var payloadValue: SettingKind {
    SettingKind(
      placeholder: "POINTER=VALUE", allowed: "POINTER=VALUE, a JSON pointer and a JSON value or text, such as /order/id=7",
      read: { ReplayFilter.PayloadValue($0) }, write: { "\($0.pointer)=\($0.value.text)" })
  }
}
