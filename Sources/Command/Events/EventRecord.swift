import JSON
import Kafka
import Notifications
import Operations

/// A borrowed record of the events topic. It has the CloudEvents attributes and the members of its value, in order.
struct EventRecord {
  struct Attribute {
    let name: String
    let value: UnsafeRawBufferPointer
  }

  struct Member {
    let name: String
    /// Its text in the value.
    let source: UnsafeRawBufferPointer
    /// The characters of a string; nil for another type.
    let text: String?
  }

  let partition: Int32
  let offset: Int64
  /// The headers that begin with `ce_`, and the trace.
  let attributes: [Attribute]
  /// The members of the value; nil if it is not a JSON object.
  let members: [Member]?
  let value: UnsafeRawBufferPointer
}

extension EventRecord {
  init(_ record: RecordView) {
    partition = record.partition
    offset = record.offset
    value = record.value ?? UnsafeRawBufferPointer(start: nil, count: 0)
    var attributes: [Attribute] = []
    record.forEachHeader { name, value in
      let name = String(cString: name)
      let isAttribute = name.hasPrefix("ce_") || name == EventHeader.traceparent.rawValue
      if isAttribute, let value { attributes.append(Attribute(name: name, value: value)) }
    }
    self.attributes = attributes
    members = try? Self.members(of: value)
  }

  static func members(of value: UnsafeRawBufferPointer) throws(JSONError) -> [Member] {
    var members: [Member] = []
    var scanner = JSONScanner(value)
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      let value = try scanner.skip()
      members.append(Member(name: scanner.text(key) ?? "", source: scanner.source(value), text: scanner.text(value)))
    }
    try scanner.finish()
    return members
  }

  /// The value of an attribute.
  func attribute(_ name: String) -> String? {
    attributes.first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
  }

  /// Whether it is about a device, which is its subject then. Other events have the request's apns-id as subject.
  private var isAboutDevice: Bool {
    attribute(EventHeader.type.rawValue).flatMap { Outcome(cloudEventsType: $0) }?.isAboutDevice == true
  }

  /// The request's apns-id.
  var id: String? { isAboutDevice ? nil : attribute(EventHeader.subject.rawValue) }

  /// The device's token.
  var device: String? { isAboutDevice ? attribute(EventHeader.subject.rawValue) : text("device") }

  /// The value of a member that is a string.
  func text(_ name: String) -> String? { members?.first { $0.name == name }?.text }

  /// The value of a member as a name.
  func name(_ name: String) -> Name? { text(name).map { Name($0) } }
}

/// Selects events.
struct EventFilter: Sendable {
  /// CloudEvents types; empty for all.
  var types: Set<String>
  /// The device's token.
  var device: String?
  /// The request's apns-id.
  var id: String?
  /// The application's bundle id.
  var application: Name?
  /// The person, and the registered devices of the person.
  var person: (user: Name, devices: PersonDevices)?
  /// The earliest time of an event, in milliseconds since 1970.
  var since: Int64?

  /// Whether it selects an event. An event about a device also changes the person's devices for the later events.
  mutating func admits(_ event: EventRecord) -> Bool {
    let isOfPerson = isOfPerson(event)
    if !types.isEmpty, !types.contains(event.attribute(EventHeader.type.rawValue) ?? "") { return false }
    if let device, event.device != device { return false }
    if let id, event.id != id { return false }
    if let application, event.name("application") != application { return false }
    if !isOfPerson { return false }
    if let since, let time = event.attribute(EventHeader.time.rawValue).flatMap(Timestamp.parse), time < since { return false }
    return true
  }

  /// Whether an event concerns the person: by name, by its request, or by one of the person's devices.
  private mutating func isOfPerson(_ event: EventRecord) -> Bool {
    guard let user = person?.user else { return true }
    let device = event.device
    let type = event.attribute(EventHeader.type.rawValue).flatMap { Outcome(cloudEventsType: $0) }
    if let device, let type, type.isAboutDevice {
      let wasOfPerson = person?.devices.tokens.contains(Name(device)) == true
      if type == .unregisteredDevice { person?.devices.take(Name(device), registration: nil) }
      if let registration = event.members?.first(where: { $0.name == "registration" }) {
        person?.devices.take(Name(device), registration: registration.source)
      }
      if wasOfPerson { return true }
    }
    return event.name("user") == user || event.name("target") == "user:\(user)"
      || device.map { person?.devices.tokens.contains(Name($0)) == true } ?? false
  }
}
