import JSON
import Kafka
import Notifications
import Operations

/// A record of the events topic. It has the CloudEvents attributes and the members of its value, in order.
struct EventRecord {
  let partition: Int32
  let offset: Int64
  /// The headers that begin with `ce_`, and the trace.
  let attributes: [(name: String, value: String)]
  /// The value; a string if it is not a JSON object.
  let value: JSONValue
}

extension EventRecord {
  init(_ record: RecordView) {
    let value = record.value ?? .empty
    self.init(partition: record.partition, offset: record.offset, headers: record.texts, value: value)
  }

  init(partition: Int32, offset: Int64, headers: [(name: String, value: String)], value: UnsafeRawBufferPointer) {
    (self.partition, self.offset) = (partition, offset)
    attributes = headers.filter { $0.name.hasPrefix("ce_") || $0.name == EventHeader.traceparent.rawValue }
    let json = try? JSONValue(parsing: value)
    self.value = json?.members == nil ? .string(String(decoding: value, as: UTF8.self)) : json ?? .null
  }

  /// The value of an attribute.
  func attribute(_ name: String) -> String? {
    attributes.first { $0.name == name }?.value
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
  func text(_ name: String) -> String? { value[name]?.stringValue }

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
  var person: (user: Name, devices: TargetDevices)?
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
    let (device, target): (Name?, Name) = (event.device.map { Name($0) }, "user:\(user)")
    func isOnDevice() -> Bool { device.map { person?.devices[target][$0] != nil } ?? false }
    let type = event.attribute(EventHeader.type.rawValue).flatMap { Outcome(cloudEventsType: $0) }
    if let device, let type, type.isAboutDevice {
      let wasOfPerson = isOnDevice()
      if type == .unregisteredDevice { person?.devices.take(device, registration: nil) }
      if let registration = event.value["registration"] {
        Array(registration.text.utf8).withUnsafeBytes { person?.devices.take(device, registration: $0) }
      }
      if wasOfPerson { return true }
    }
    return event.name("user") == user || event.name("target") == target || isOnDevice()
  }
}
