public import JSON
public import Notifications

/// A request for a notification (`UNNotificationRequest`): a local one that the program adds, or one of the cluster.
public struct NotificationRequest: Sendable, Equatable {
  /// The largest payload of a local request, in bytes.
  public static var maximumPayloadBytes: Int { 32_768 }

  /// The program's own name for it. A request with the same one replaces it, also one of the cluster.
  public var identifier: Name
  /// What is shown.
  public var content: NotificationContent
  /// When or where it is due; nil is at once.
  public var trigger: NotificationTrigger?
  /// The files that `add` moves into the device's store. A delivered notification has its own: ``DeliveredNotification/attachments``.
  public var attachments: [AttachmentSource]

  /// A request.
  public init(
    identifier: Name, content: NotificationContent, trigger: NotificationTrigger? = nil, attachments: [AttachmentSource] = []
  ) {
    (self.identifier, self.content, self.trigger, self.attachments) = (identifier, content, trigger, attachments)
  }

  /// A local request as the frame that the cluster would have sent for it, so that both go one way from here.
  ///
  /// - Parameter attachments: its files, which are in the store.
  func frame(id: String, _ attachments: [NotificationAttachment] = []) throws(DeviceError) -> NotifyFrame {
    let payload = content.payload.jsonBytes
    guard payload.count <= Self.maximumPayloadBytes else {
      throw DeviceError(.badRequest, "content: the content of a local request takes at most \(Self.maximumPayloadBytes) bytes as JSON")
    }
    guard content.hasAlert || content.sound != nil || (content.badge ?? 0) != 0 else {
      throw DeviceError(.badRequest, "content: a local request has a text, a sound, or a badge other than 0")
    }
    try Self.checkBadge(content.badge ?? 0)
    try trigger?.check()
    var json = JSONWriter()
    json.openObject()
    json.member("type", ServerFrameType.notify.rawValue)
    json.member("delivery", 0)
    json.member("id", id)
    json.member("identifier", identifier)
    json.member("revision", "local")
    trigger?.json?.withBytes { json.member("trigger", raw: $0) }
    json.member("attachments", attachments.isEmpty ? nil : attachments.map(\.object))
    payload.withUnsafeBytes { json.member("payload", raw: $0) }
    json.closeObject()
    do throws(DeviceFrameError) {
      guard case .notify(let frame) = try json.withUnsafeBytes({ bytes throws(DeviceFrameError) in try ServerFrame(bytes) }) else {
        preconditionFailure("the frame says that it is a notification")
      }
      return frame
    } catch { throw DeviceError(.badRequest, "\(error.field): \(error.rule)") }
  }
}

extension NotificationRequest {
  /// Checks a number for the application's icon by the rule of published requests.
  static func checkBadge(_ count: Int) throws(DeviceError) {
    guard (0...Int(Int32.max)).contains(count) else {
      throw DeviceError(.badRequest, "badge: a badge is a number from 0 to \(Int32.max); 0 removes it")
    }
  }
}

/// A file of the program that a local notification comes with.
public struct AttachmentSource: Sendable, Equatable {
  /// What the program knows it by, unique in its notification.
  public var identifier: Name
  /// The path of the file, which `add` moves away.
  public var path: String
  /// How it is shown.
  public var options: AttachmentOptions

  /// A file.
  public init(identifier: Name, path: String, options: AttachmentOptions = AttachmentOptions()) {
    (self.identifier, self.path, self.options) = (identifier, path, options)
  }
}

extension NotificationContent {
  /// The content of a local request.
  ///
  /// - Parameter userInfo: the program's own members; a member `aps` of it is ignored.
  public init(
    title: String = "", subtitle: String = "", body: String = "", badge: Int? = nil, sound: NotificationSound? = nil,
    threadIdentifier: Name? = nil, categoryIdentifier: Name? = nil, targetContentIdentifier: Name? = nil,
    interruptionLevel: InterruptionLevel = .active, relevanceScore: Double? = nil, filterCriteria: String? = nil,
    launchImageName: String? = nil, userInfo: [String: JSONValue] = [:]
  ) {
    func text(_ value: String) -> String? { value.isEmpty ? nil : value }
    let alert = JSONValue.object(present: [
      "title": text(title), "subtitle": text(subtitle), "body": text(body), "launch-image": launchImageName,
    ])
    let aps = JSONValue.object(present: [
      "alert": alert == .object([]) ? nil : alert, "badge": badge, "sound": sound?.json, "thread-id": threadIdentifier,
      "category": categoryIdentifier, "target-content-id": targetContentIdentifier,
      "interruption-level": interruptionLevel == .active ? nil : interruptionLevel.rawValue, "relevance-score": relevanceScore,
      "filter-criteria": filterCriteria,
    ])
    let own = userInfo.filter { $0.key != "aps" }.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    self.init(.object([.init(key: "aps", value: aps)] + own.map { .init(key: $0.key, value: $0.value) }))
  }
}

extension NotificationSound {
  /// The sound as the member `sound` of a payload.
  fileprivate var json: JSONValue {
    guard isCritical || volume != nil else { return .string(name) }
    var object: JSONValue = ["name": .string(name), "critical": .integer(isCritical ? 1 : 0)]
    if let volume { object.set("volume", JSONValue(floatLiteral: volume)) }
    return object
  }
}
