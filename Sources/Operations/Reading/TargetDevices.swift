package import Kafka
package import Notifications
package import Worker

/// The registered devices of some targets, by the topic `devices`. A value.
package struct TargetDevices: Sendable {
  private let targets: Set<Name>
  private let application: Name?
  /// The application of each device of the targets, by the device's token.
  private var devices: [Name: [Name: Name]] = [:]
  /// The targets beside the device itself that it belongs to, by its token.
  private var memberships: [Name: [Name]] = [:]

  /// Makes it without devices.
  ///
  /// - Parameters:
  ///   - targets: `user:…` or `device:…`.
  ///   - application: only its devices count; nil for those of all applications.
  package init(of targets: Set<Name>, application: Name? = nil) { (self.targets, self.application) = (targets, application) }

  /// The application of each device of a target, by the device's token.
  package subscript(target: Name) -> [Name: Name] { devices[target] ?? [:] }

  /// The applications of a target, each with its number of devices.
  func applications(of target: Name) -> [Name: Int] { self[target].values.reduce(into: [:]) { $0[$1, default: 0] += 1 } }

  /// Reads the topic from its beginning to its present end.
  package mutating func read(_ topic: String, _ reader: TopicReader, _ admin: Admin) async throws(KafkaError) {
    let found = Gathered(self)
    try await reader.read(try await admin.stretches(of: topic), "devices", isCompacted: true) { record in
      if let key = record.key { found.value.take(Name(key), registration: record.value) }
    }
    self = found.value
  }

  /// Takes a device's record, the newest last. Without a registration the device is unregistered.
  package mutating func take(_ token: Name, registration: UnsafeRawBufferPointer?) {
    for target in memberships.removeValue(forKey: token) ?? [] { devices[target]?[token] = nil }
    let device: Name = "device:\(token)"
    devices[device]?[token] = nil
    guard let registration, let (application, known) = try? Registration.memberships(json: registration),
      application == self.application ?? application
    else { return }
    if targets.contains(device) { devices[device, default: [:]][token] = application }
    let wanted = known.filter(targets.contains)
    for target in wanted { devices[target, default: [:]][token] = application }
    if !wanted.isEmpty { memberships[token] = wanted }
  }
}
