public import JSON

/// The frame `notify`: a notification.
public struct NotifyFrame: Sendable, Equatable, JSONWritable {
  /// The delivery's number in this session, for the acknowledgement.
  public var delivery: UInt64
  /// The apns-id.
  public var id: String
  /// The request's identifier. A newer notification replaces an older one.
  public var identifier: Name
  /// The revision, compared byte by byte: the higher one is newer.
  public var revision: String
  /// The last time to show it, in seconds since 1970; 0 is one attempt.
  ///
  /// The cluster's clock counts.
  public var expiration: Int64
  /// The priority: 10, 5 or 1.
  public var priority: Int
  /// The kind of notification.
  public var pushType: String
  /// How the device may present it; `nil` if the cluster does not say.
  public var presentation: PresentationOptions?
  /// The interruption level that counts, if it is not the payload's.
  public var interruptionLevel: InterruptionLevel?
  /// Its published category, if the device has none of its own.
  public var category: NotificationCategory?
  /// When or where it is due, as JSON; `nil` if it is due now.
  public var trigger: String?
  /// The W3C trace context of the request; `nil` if it has none.
  public var traceparent: String?
  /// The attachments.
  public var attachments: [LinkedAttachment]
  /// The payload, byte for byte.
  public var payload: [UInt8]
  /// The receipt that a response returns.
  public var receipt: String

  /// Reads the notify frame of a text. The scanner has found payload and trigger.
  init(_ reader: ObjectReader, payload: UnsafeRawBufferPointer?, trigger: UnsafeRawBufferPointer?) throws(FieldError) {
    delivery = UInt64(clamping: try reader.requiredInteger("delivery"))
    id = try reader.requiredText("id", longest: FrameLimits.idBytes)
    identifier = try reader.requiredName("identifier", longest: FrameLimits.idBytes)
    revision = try reader.requiredText("revision", longest: FrameLimits.idBytes)
    expiration = try reader.integer("expiration") ?? 0
    priority = Int(try reader.integer("priority", in: 0...100) ?? 10)
    pushType = try reader.text("pushType", longest: FrameLimits.idBytes) ?? PushType.alert.name.description
    presentation = reader["presentation"].map { PresentationOptions(words: ($0.elements ?? []).compactMap(\.stringValue)) }
    // An unknown form of category must not stop the notification from being shown.
    category = reader["category"].flatMap { try? NotificationCategory($0, path: "category") }
    interruptionLevel = reader["interruptionLevel"]?.stringValue.flatMap(InterruptionLevel.init(rawValue:))
    traceparent = try reader.text("traceparent", longest: FrameLimits.idBytes)
    attachments = []
    for (value, path) in try reader.elements("attachments", atMost: NotificationAttachment.maximum) ?? [] {
      // An unknown kind of attachment is ignored, and the notification is shown.
      if let attachment = try? LinkedAttachment(value, path: path) { attachments.append(attachment) }
    }
    receipt = try reader.text("receipt", longest: FrameLimits.receiptBytes) ?? ""
    self.payload = Array(try reader.required("payload", payload))
    self.trigger = trigger?.text
  }

  /// Appends the frame, as the device keeps it. It is read again as it is now.
  public func write(to json: inout JSONWriter) {
    json.openFrame("notify")
    json.member("delivery", delivery)
    json.member("id", id)
    json.member("identifier", identifier)
    json.member("revision", revision)
    json.member("expiration", expiration)
    json.member("priority", priority)
    json.member("pushType", pushType)
    json.member("presentation", presentation)
    if let interruptionLevel { json.member("interruptionLevel", word: interruptionLevel.word) }
    json.member("category", category)
    trigger?.withBytes { json.member("trigger", raw: $0) }
    if let traceparent { json.member("traceparent", traceparent) }
    json.member("attachments", attachments.isEmpty ? nil : attachments.map(\.object))
    payload.withUnsafeBytes { json.member("payload", raw: $0) }
    // A notification without a receipt came without one, and an empty one would not be read again.
    if !receipt.isEmpty { json.member("receipt", receipt) }
    json.closeObject()
  }
}

extension ServerFrames {
  /// Appends `notify` for an entry.
  ///
  /// It copies payload and trigger byte for byte. Without attachments it allocates nothing.
  ///
  /// - Parameters:
  ///   - entry: the entry of a notification. Its JSON was checked with its request.
  ///   - delivery: the number in this session, at most ``FrameLimits/largestDelivery``.
  ///   - presentation: how the device may present it.
  ///   - level: the interruption level that counts, if it is not the payload's.
  ///   - category: the published category as JSON, if the device has none of its own; else empty.
  ///   - receipt: the signed receipt as text.
  ///   - link: returns the link to a file; nil if the cluster serves no media.
  public static func notify(
    _ entry: DeliveryEntryView, revision: Revision, delivery: UInt64, presentation: PresentationOptions,
    countingAs level: InterruptionLevel? = nil, category: [UInt8]? = nil, receipt: UnsafeRawBufferPointer, to json: inout JSONWriter,
    link: (MediaHash) -> MediaLink? = { _ in nil }
  ) {
    json.openFrame("notify")
    json.member("delivery", delivery)
    entry.id.withText { json.member("id", utf8: $0) }
    entry.withIdentifier { json.member("identifier", utf8: $0) }
    revision.withText { json.member("revision", utf8: $0) }
    json.member("expiration", entry.expiration)
    json.member("priority", Int(entry.priority))
    json.member("pushType", word: entry.pushType.name)
    json.member("presentation", presentation)
    if let level { json.member("interruptionLevel", word: level.word) }
    if let category { category.withUnsafeBytes { json.member("category", raw: $0) } }
    if !entry.trigger.isEmpty { json.member("trigger", raw: entry.trigger) }
    if !entry.traceparent.isEmpty { json.member("traceparent", utf8: entry.traceparent) }
    if !entry.attachments.isEmpty, let attachments = NotificationAttachment.list(entry.attachments) {
      json.member("attachments", attachments.map { LinkedAttachment($0, link: link($0.media.hash)).object })
    }
    json.member("payload", raw: entry.payload.isEmpty ? ("{}" as StaticString).bytes : entry.payload)
    json.member("receipt", utf8: receipt)
    json.closeObject()
  }
}
