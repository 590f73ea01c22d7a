internal import JSON

/// An event as tools read it, copied from a record of `notifications.events`.
public struct Event: Sendable, Equatable {
  /// The CloudEvents id. Repeated events of the same happening have the same id.
  public var eventID: String
  /// The outcome; `nil` if this version does not know the type.
  public var type: Outcome?
  /// The CloudEvents type as written.
  public var typeName: String
  /// The cluster that emitted the event, `ce_source`.
  public var cluster: String
  /// The apns-id; for an event about a device its token.
  public var subject: String?
  /// The time of the event, in milliseconds since 1970.
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
  /// The first position of the request.
  public var source: SourceCoordinates?
  /// The revision; that of the source if the event names none.
  public var revision: Revision?
  /// The worker that emitted the event.
  public var worker: Name?

  /// The complete value, as JSON. It has the members that only some outcomes have.
  public var json: String

  /// Reads a record; throws if it is not an event. Missing or invalid members are nil.
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
  }

  private static func coordinates(_ value: JSONValue) -> SourceCoordinates? {
    guard let topic = value["topic"]?.stringValue, let partition = value["partition"]?.integerValue.flatMap({ Int32(exactly: $0) }),
      let offset = value["offset"]?.integerValue
    else { return nil }
    return SourceCoordinates(topic: topic, partition: partition, offset: offset, timestamp: value["timestamp"]?.integerValue ?? 0)
  }
}
