import EventLoop
import Ingress
import Notifications
import Worker

/// The settings of `carillon publish`.
enum PublishSettings {
  static let target = Setting<Name?>(
    "publish.target", .name("TARGET"), "The recipient: device:TOKEN, or user:ID for all the person's devices.")
  static let app = Setting<Name?>("publish.app", .name("BUNDLE-ID"), "The application: apns-topic.")
  static let id = Setting<String?>(
    "publish.id", .string("UUID"), "apns-id, which identifies the request if it is published again. Absent: a random one.")
  static let collapseID = Setting<Name?>(
    "publish.collapse-id", .name("ID"), "apns-collapse-id: a newer request with the same one replaces the older one.")
  static let expiration = Setting<Moment?>(
    "publish.expiration", .expiration, "apns-expiration: when it expires and is not shown any more. Absent: the longest lifetime.")
  static let priority = Setting<String?>("publish.priority", .string("10|5|1", completion: .words(["10", "5", "1"])), "apns-priority.")
  static let pushType = Setting<String?>(
    "publish.push-type", .string("TYPE"), "apns-push-type: alert, background and so on. Absent: found from the payload.")
  static let trigger = Setting<String?>("publish.trigger", .string("JSON"), "When or where it is due. Absent: now.")
  static let operation = Setting<String?>(
    "publish.operation", .string("notify|remove|cancel", completion: .words(["notify", "remove", "cancel"])),
    "The action: notify shows it, remove removes delivered ones and cancel ends waiting ones: by --identifiers or --collapse-id, or with --all."
  )
  static let identifiers = Setting<[Name]>(
    "publish.identifiers", .repeated(.name("ID,…")), default: [],
    "What a removal or a cancel names: collapse ids, or apns-ids of requests without one. Each is published as a separate request.")
  static let removesAll = Setting(
    "publish.all", .boolean, default: false,
    "A removal of all delivered notifications, or a cancel of all waiting ones, of the application that are older than it.")
  static let headers = Setting<[HeaderEdit]>(
    "publish.header", .repeated(.header("NAME=VALUE", allowed: "NAME=VALUE"), splitsAtCommas: false), default: [],
    "A further record header, such as traceparent=…")

  static let request = SettingGroup(
    "Request", [target, app, collapseID, expiration, trigger],
    advanced: [id, priority, pushType, operation, identifiers, removesAll, headers])

  static let title = Setting<String?>("publish.title", .string("TEXT"), "aps.alert.title.")
  static let subtitle = Setting<String?>("publish.subtitle", .string("TEXT"), "aps.alert.subtitle.")
  static let body = Setting<String?>("publish.body", .string("TEXT"), "aps.alert.body.")
  static let badge = Setting<Int?>("publish.badge", .integer(0...Int(Int32.max)), "aps.badge.")
  static let sound = Setting<String?>("publish.sound", .string("NAME"), "aps.sound.")
  static let category = Setting<Name?>("publish.category", .name("ID"), "aps.category: which actions the notification has.")
  static let threadID = Setting<Name?>("publish.thread-id", .name("ID"), "aps.thread-id: the group of the notification.")
  static let interruptionLevel = Setting<InterruptionLevel?>(
    "publish.interruption-level", .choice, "aps.interruption-level: what it may interrupt. Absent: active.")
  static let relevanceScore = Setting<Double?>(
    "publish.relevance-score", .share, "aps.relevance-score: the place of the notification in a summary; the highest stands out.")
  static let isMutable = Setting("publish.mutable-content", .boolean, default: false, "A service extension may change it.")
  static let isContentAvailable = Setting(
    "publish.content-available", .boolean, default: false, "Wakes the application; alone it shows nothing.")
  static let custom = Setting<[CustomMember]>(
    "publish.custom", .repeated(.customMember, splitsAtCommas: false), default: [], "A member of the payload beside aps.")
  static let payload = Setting<String?>(
    "publish.payload", .fileOrInput, "A file with the whole payload; - is standard input.")

  static let content = SettingGroup(
    "Payload", [title, body, category, payload],
    advanced: [subtitle, badge, sound, threadID, interruptionLevel, relevanceScore, isMutable, isContentAvailable, custom])

  static let lines = Setting<String?>("publish.lines", .fileOrInput, "Many requests, one JSON object a line; - is standard input.")
  static let isUnchecked = Setting(
    "publish.unchecked", .boolean, default: false, "Publish invalid requests too, to see the cluster's reaction.")
  static let isDryRun = Setting(
    "publish.dry-run", .boolean, default: false,
    "Publishes nothing: prints the records that would be, with their keys, headers and values. Needs no Kafka.")
  static let timeout = Setting(
    "publish.timeout", .duration(.seconds(1)...(.seconds(600))), default: .seconds(30), "How long Kafka may take to acknowledge a request.")
  static let wait = Setting<Duration?>(
    "publish.wait", .duration(.seconds(1)...(.seconds(3_600))),
    "Follows the published requests, at most a thousand, for at most this time, and prints the outcome at each device as soon as it is known."
  )

  static let way = SettingGroup("Publishing", [lines, wait, isDryRun], advanced: [timeout, isUnchecked, RequestSettings.payloadBytes])

  /// The request of the flags; with `--lines`, the defaults for the lines.
  static func draft(_ values: SettingValues, now: Int64) throws -> RequestDraft {
    var draft = RequestDraft()
    draft.target = values[target]
    func set(_ header: RequestHeader, _ value: String?) { if let value { draft.headers[header] = value } }
    for header in values[headers] { draft.headers[Name(header: header.name.text)] = header.value }
    if let target = draft.headers.removeValue(forKey: Name(RequestHeader.target)) { draft.target = draft.target ?? Name(target) }
    set(.topic, values[app]?.text)
    set(.id, values[id])
    set(.collapseID, values[collapseID]?.text)
    set(.expiration, values[expiration].map { String($0.secondsAfter(now: now)) })
    set(.priority, values[priority])
    set(.pushType, values[pushType])
    set(.trigger, values[trigger])
    set(.operation, values[operation])
    draft.identifiers = values[identifiers]
    draft.removesAll = values[removesAll]
    if draft.removesAll,
      !["remove", "cancel"].contains(values[operation]) || draft.headers[RequestHeader.collapseID] != nil || !draft.identifiers.isEmpty
    {
      throw UsageError(.contradiction, "--all belongs to --operation remove or cancel, without --collapse-id and --identifiers")
    }
    draft.content = PayloadDraft(
      title: values[title], subtitle: values[subtitle], body: values[body], badge: values[badge].map(Int64.init), sound: values[sound],
      category: values[category], threadID: values[threadID],
      interruptionLevel: values[interruptionLevel], relevanceScore: values[relevanceScore], isMutable: values[isMutable],
      isContentAvailable: values[isContentAvailable], custom: values[custom])
    if let path = values[payload] {
      guard draft.content.isEmpty else {
        throw UsageError(.contradiction, "--payload is the whole payload: no --title, --body, --custom and so on beside it")
      }
      draft.payload = try values.naming(payload) { () throws(Failure) in try Descriptor.contents(of: path, limit: 1 << 20) }
    }
    return draft
  }
}

extension SettingKind where Value == CustomMember {
  fileprivate static var customMember: SettingKind {
    SettingKind(
      placeholder: "KEY=JSON", allowed: "KEY=JSON, such as order='{\"id\":7}' or kind='\"sale\"', and not aps", read: { CustomMember($0) },
      write: \.text)
  }
}

extension SettingKind where Value == Double {
  fileprivate static var share: SettingKind {
    SettingKind(
      placeholder: "SCORE", allowed: "a number from 0 to 1", read: { Double($0).flatMap { (0...1).contains($0) ? $0 : nil } },
      write: { "\($0)" })
  }
}
