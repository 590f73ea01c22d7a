import JSON
public import Notifications

/// An application that a request's target has registered devices for.
public struct RegisteredApplication: Sendable, Equatable {
  /// The application's bundle id.
  public var application: Name
  /// The number of devices.
  public var devices: Int
}

/// The applications that some targets have devices for, by the topic `devices`. A value.
struct RegisteredApplications {
  private let targets: Set<Name>
  /// The application of each device of the targets, by the device's token.
  private var devices: [Name: [Name: Name]] = [:]
  /// The owner of each device, by its token; only of the targets.
  private var owners: [Name: Name] = [:]

  /// Makes it without devices.
  ///
  /// - Parameter targets: `user:…` or `device:…`.
  init(of targets: Set<Name>) { self.targets = targets }

  /// Takes a device's record, the newest last. Without a registration the device is unregistered.
  mutating func take(_ token: Name, registration: UnsafeRawBufferPointer?) {
    if let owner = owners.removeValue(forKey: token) { devices[owner]?[token] = nil }
    let device: Name = "device:\(token)"
    devices[device]?[token] = nil
    guard let registration, let (application, user) = try? Self.read(registration) else { return }
    if targets.contains(device) { devices[device, default: [:]][token] = application }
    guard let user, targets.contains(user) else { return }
    devices[user, default: [:]][token] = application
    owners[token] = user
  }

  /// The applications of a target, by their names.
  func applications(of target: Name) -> [RegisteredApplication] {
    var counts: [Name: Int] = [:]
    for application in (devices[target] ?? [:]).values { counts[application, default: 0] += 1 }
    return counts.sorted { $0.key < $1.key }.map { RegisteredApplication(application: $0.key, devices: $0.value) }
  }

  /// The application of a registration, and its person as a target.
  private static func read(_ registration: UnsafeRawBufferPointer) throws(JSONError) -> (Name, Name?)? {
    var (application, user): (Name?, Name?) = (nil, nil)
    var scanner = JSONScanner(registration)
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      let value = try scanner.skip()
      if scanner.matches(key, "application") { application = scanner.text(value).map { Name($0) } }
      if scanner.matches(key, "user") { user = scanner.text(value).map { "user:\($0)" } }
    }
    try scanner.finish()
    return application.map { ($0, user) }
  }
}
