import JSON
package import Kafka
package import Notifications
package import Worker

/// The devices that are registered for a person, by the topic `devices`.
package struct PersonDevices: Sendable {
  private let user: Name
  private let application: Name?
  /// Their tokens.
  package private(set) var tokens: Set<Name> = []

  /// Makes it for a person and one application, or all.
  package init(of user: Name, application: Name?) {
    self.user = user
    self.application = application
  }

  /// Reads the topic from its beginning to its present end.
  package mutating func read(_ topic: String, _ reader: TopicReader, _ admin: Admin) async throws(KafkaError) {
    let found = Gathered(self)
    try await reader.read(try await admin.stretches(of: topic), "devices", isCompacted: true) { record in
      if let key = record.key { found.value.take(Name(key), registration: record.value) }
    }
    self = found.value
  }

  /// Takes a device's record. Without a registration the device is unregistered.
  package mutating func take(_ token: Name, registration: UnsafeRawBufferPointer?) {
    if registration.flatMap({ try? isOfPerson($0) }) == true { tokens.insert(token) } else { tokens.remove(token) }
  }

  /// Whether a registration names the person and the application.
  private func isOfPerson(_ registration: UnsafeRawBufferPointer) throws(JSONError) -> Bool {
    var (isOfUser, isOfApplication) = (false, application == nil)
    var scanner = JSONScanner(registration)
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      let value = try scanner.skip()
      if scanner.matches(key, "user") { isOfUser = scanner.matches(value, text: user.text) }
      if let application, scanner.matches(key, "application") { isOfApplication = scanner.matches(value, text: application.text) }
    }
    try scanner.finish()
    return isOfUser && isOfApplication
  }
}
