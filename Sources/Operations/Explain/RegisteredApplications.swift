package import Notifications

/// An application that a request's target has registered devices for.
package struct RegisteredApplication: Sendable, Equatable {
  /// The application's bundle id.
  package var application: Name
  /// The number of devices.
  package var devices: Int
}

/// The applications that some targets have devices for, by the topic `devices`. A value.
struct RegisteredApplications {
  private let targets: Set<Name>
  /// The application of each device of the targets, by the device's token.
  private var devices: [Name: [Name: Name]] = [:]
  /// The targets beside the device itself that it belongs to, by its token.
  private var memberships: [Name: [Name]] = [:]

  /// Makes it without devices.
  ///
  /// - Parameter targets: `user:…` or `device:…`.
  init(of targets: Set<Name>) { self.targets = targets }

  /// Takes a device's record, the newest last. Without a registration the device is unregistered.
  mutating func take(_ token: Name, registration: UnsafeRawBufferPointer?) {
    for target in memberships.removeValue(forKey: token) ?? [] { devices[target]?[token] = nil }
    let device: Name = "device:\(token)"
    devices[device]?[token] = nil
    guard let registration, let (application, known) = try? Registration.memberships(json: registration) else { return }
    if targets.contains(device) { devices[device, default: [:]][token] = application }
    let wanted = known.filter(targets.contains)
    for target in wanted { devices[target, default: [:]][token] = application }
    if !wanted.isEmpty { memberships[token] = wanted }
  }

  /// The applications of a target, by their names.
  func applications(of target: Name) -> [RegisteredApplication] {
    var counts: [Name: Int] = [:]
    for application in (devices[target] ?? [:]).values { counts[application, default: 0] += 1 }
    return counts.sorted { $0.key < $1.key }.map { RegisteredApplication(application: $0.key, devices: $0.value) }
  }
}
