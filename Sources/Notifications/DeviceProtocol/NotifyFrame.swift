internal import JSON

/// The frame `notify`: a notification.
public struct NotifyFrame: Sendable, Equatable {
  /// Its number in this session, for the acknowledgement.
  public var delivery: UInt64
  /// The apns-id.
  public var id: String
  /// The request's identifier: a newer one takes the place of an older one.
  public var identifier: Name
  /// Which is newer: compared byte by byte.
  public var revision: String
  /// Until when it may be shown, in seconds since 1970 by the cluster's clock; 0 is one attempt.
  public var expiration: Int64
  /// 10, 5 or 1.
  public var priority: Int
  /// What kind of notification.
  public var pushType: String
  /// How it may be presented; `nil` where the cluster does not say.
  public var presentation: PresentationOptions?
  /// What its interruption level counts as, where that is not the payload's.
  public var interruptionLevel: InterruptionLevel?
  /// Its category, where that was published and the device has none of its own.
  public var category: NotificationCategory?
  /// When or where it is due, as JSON; `nil` when now.
  public var trigger: String?
  /// The W3C trace context of its request; `nil` when it came without one.
  public var traceparent: String?
  /// What it comes with.
  public var attachments: [LinkedAttachment]
  /// The payload, byte for byte.
  public var payload: [UInt8]
  /// What a response gives back.
  public var receipt: String

  /// Reads the notify frame in a text; the members stand where the walk has found them.
  init(_ reader: ObjectReader, payload: UnsafeRawBufferPointer?, trigger: UnsafeRawBufferPointer?) throws(FieldError) {
    delivery = UInt64(clamping: try reader.requiredInteger("delivery"))
    id = try reader.requiredText("id", longest: FrameLimits.idBytes)
    identifier = try reader.requiredName("identifier", longest: FrameLimits.idBytes)
    revision = try reader.requiredText("revision", longest: FrameLimits.idBytes)
    expiration = try reader.integer("expiration") ?? 0
    priority = Int(try reader.integer("priority", in: 0...100) ?? 10)
    pushType = try reader.text("pushType", longest: FrameLimits.idBytes) ?? PushType.alert.name.description
    presentation = reader["presentation"].map { PresentationOptions(words: ($0.elements ?? []).compactMap(\.stringValue)) }
    // One of a form that this version does not know is no reason not to show the notification.
    category = reader["category"].flatMap { try? NotificationCategory($0, path: "category") }
    interruptionLevel = reader["interruptionLevel"]?.stringValue.flatMap(InterruptionLevel.init(rawValue:))
    traceparent = try reader.text("traceparent", longest: FrameLimits.idBytes)
    attachments = []
    for (value, path) in try reader.elements("attachments", atMost: NotificationAttachment.maximum) ?? [] {
      // One of a kind that this version does not know is passed over, and the notification is shown.
      if let attachment = try? LinkedAttachment(value, path: path) { attachments.append(attachment) }
    }
    receipt = try reader.text("receipt", longest: FrameLimits.receiptBytes) ?? ""
    guard let payload else { throw reader.error("payload", "This member is required.") }
    self.payload = Array(payload)
    self.trigger = trigger?.text
  }
}
