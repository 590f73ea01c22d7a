internal import JSON

/// An event as tools read it: copied out of a record of `notifications.events`.
public struct Event: Sendable, Equatable {
  /// The CloudEvents id: the same whenever the same happening is told.
  public var eventID: String
  /// What happened; `nil` when this version does not know the type.
  public var type: Outcome?
  /// The CloudEvents type as written.
  public var typeName: String
  /// The cluster that tells, `ce_source`.
  public var cluster: String
  /// The apns-id, or for an event about a device its token.
  public var subject: String?
  /// When it was told, in milliseconds since 1970.
  public var time: Int64?
  /// The trace context.
  public var traceparent: String?

  /// The request's id.
  public var id: NotificationID?
  /// The request's identifier.
  public var identifier: Name?
  /// The device token.
  public var device: String?
  /// The request's target, for an event without a device.
  public var target: String?
  /// The application's bundle id.
  public var application: Name?
  /// The user.
  public var user: Name?
  /// Where the request came from first.
  public var source: SourceCoordinates?
  /// The revision: where the event names none, that of its source.
  public var revision: Revision?
  /// The worker that tells.
  public var worker: Name?

  /// For how many devices an addressed request is.
  public var devices: Int?
  /// Why it was rejected, filtered and so on.
  public var reason: String?
  /// How many occurrences of a schedule were skipped together.
  public var skipped: Int?
  /// Why the application was stopped, as a person wrote it.
  public var detail: String?
  /// The header or the member that is wrong.
  public var field: String?
  /// The rule that it breaks.
  public var rule: String?
  /// The notification that takes the place of a collapsed one.
  public var by: NotificationID?
  /// The device's own id of a response.
  public var response: String?
  /// Apple's default or dismiss identifier, or the action's own.
  public var action: Name?
  /// The text that was typed.
  public var userText: String?
  /// When the person did it, in milliseconds since 1970.
  public var at: Int64?
  /// The whole value, as JSON.
  public var json: String

  /// Reads a record; throws where it is no event at all. Members that are missing or of another type are left out.
  public init(headers: [(name: String, value: String)], value: UnsafeRawBufferPointer) throws(FieldError) {
    func header(_ header: EventHeader) -> String? { headers.last { $0.name == header.rawValue }?.value }
    guard header(.specversion)?.hasPrefix("1.") == true, let eventID = header(.id), let typeName = header(.type),
      let cluster = header(.source)
    else { throw FieldError(field: "headers", rule: "An event has ce_specversion 1.x, ce_id, ce_type and ce_source.") }
    (self.eventID, self.typeName, self.cluster) = (eventID, typeName, cluster)
    type = Outcome(cloudEventsType: typeName)
    subject = header(.subject)
    time = header(.time).flatMap { Timestamp.parse($0) }
    traceparent = header(.traceparent)

    let object = try ObjectReader(parsing: value).object
    json = value.text
    func text(_ key: String) -> String? { object[key]?.stringValue }
    func name(_ key: String) -> Name? { object[key]?.nameValue }
    if type?.isAboutDevice == true {
      device = subject
    } else {
      id = subject.flatMap { NotificationID($0) }
      (identifier, device, target) = (name("identifier") ?? id.map { "\($0)" }, text("device"), text("target"))
    }
    (application, user, worker) = (name("application"), name("user"), name("worker"))
    source = object["source"].flatMap(Self.coordinates)
    revision = object["revision"] == nil ? source.map { Revision($0.position) } : text("revision").flatMap { Revision($0) }
    skipped = object["skipped"]?.integerValue.map { Int(Int32(clamping: max(0, $0))) }
    devices = object["devices"]?.integerValue.map { Int(Int32(clamping: max(0, $0))) }
    (reason, field, rule) = (text("reason"), text("field"), text("rule"))
    detail = text("detail")
    by = object["by"]?["apnsId"]?.stringValue.flatMap { NotificationID($0) }
    (response, action, userText) = (text("response"), name("action"), text("userText"))
    at = text("at").flatMap { Timestamp.parse($0) }
  }

  private static func coordinates(_ value: JSONValue) -> SourceCoordinates? {
    guard let topic = value["topic"]?.stringValue, let partition = value["partition"]?.integerValue.flatMap({ Int32(exactly: $0) }),
      let offset = value["offset"]?.integerValue
    else { return nil }
    return SourceCoordinates(topic: topic, partition: partition, offset: offset, timestamp: value["timestamp"]?.integerValue ?? 0)
  }
}
