import JSON
import Notifications
import Operations
import Worker

/// The settings of `carillon replay`.
enum ReplayOptions {
  static let from = Setting<Moment?>("replay.from", .past, "Records published from this time on.")
  static let to = Setting<Moment?>("replay.to", .past, "Records published before this time. Absent: up to now.")
  static let partitions = Setting("replay.partitions", .repeated(.integer(0...99_999)), default: [], "Only these partitions.")
  static let offsets = Setting(
    "replay.offsets", .repeated(.offsets), default: [],
    "Only these offsets of a partition, without the last one.")
  static let app = Setting<Name?>("replay.app", .name("BUNDLE-ID"), "Only requests of this application.")
  static let target = Setting<Name?>("replay.target", .target, "Only requests with this target.")
  static let id = Setting<NotificationID?>("replay.id", .notificationID, "Only the request of this apns-id.")
  static let collapseID = Setting<Name?>("replay.collapse-id", .name("ID"), "Only requests with this collapse id.")
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
  static let maximumBehind = Setting(
    "replay.max-behind", .duration(.zero...(.seconds(86_400))), default: .seconds(2),
    "It waits while the transform workers are behind by more than this, so that live requests need not wait; 0: it never waits.")
  static let state = Setting<String?>(
    "replay.state", .file, "The file with its progress. Absent: carillon-replay-RUN.json in the current folder, removed at the end.")
  static let resume = Setting<String?>(
    "replay.resume", .file,
    "Continues an interrupted replay, whose file has the range and the conditions. Records that Kafka has deleted meanwhile are left out.")

  static let range = SettingGroup("Range", [from, to, partitions, offsets])
  static let conditions = SettingGroup("Conditions", [isOfUnfinished, app, target, id, values], advanced: [collapseID])
  static let way = SettingGroup(
    "Replay", [RunCommand.isDryRun, RunCommand.records, maximumBehind, resume],
    advanced: [RunCommand.isNew, state, grace, spill, TransformOptions.group])

  /// The filter for the requests.
  static func filter(_ values: SettingValues) -> ReplayFilter {
    var filter = ReplayFilter()
    (filter[.application], filter[.target], filter[.collapseID]) = (values[app], values[target], values[collapseID])
    filter[.id] = values[id].map { Name($0.description) }
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
  /// `POINTER=VALUE`. The value is JSON, or else text.
  fileprivate static var payloadValue: SettingKind {
    SettingKind(
      placeholder: "POINTER=VALUE", allowed: "POINTER=VALUE, a JSON pointer and a JSON value or text, such as /order/id=7",
      read: {
        let parts = $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, let place = JSONPointer(parts[0]) else { return nil }
        return ReplayFilter.PayloadValue(place, (try? JSONValue(parsing: parts[1])) ?? .string(parts[1]))
      }, write: { "\($0.place)=\($0.value.text)" })
  }
}
