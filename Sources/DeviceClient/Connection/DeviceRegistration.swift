internal import Notifications

/// What the device registers at the cluster: its hello, the person's quiet hours, and the sign-out. A value.
///
/// A change holds on this device at once. The owner stores ``stored`` after each call, and sends what ``next()`` returns while a session is open.
struct DeviceRegistration {
  typealias Change = RegistrationChanges.Change

  /// How long after a change of the quiet hours a welcome may not have it, in milliseconds. Usually that is a second.
  static let hoursSpread: UInt64 = 10_000

  /// The device's present identity. Its changes are sent with the next hello.
  private(set) var hello: Hello
  /// The size of the hello as a frame.
  private var helloBytes: Int
  /// What the person and the program have decided, as it must outlive the program.
  private(set) var stored = StoredRegistration()
  private var changes = RegistrationChanges()
  /// The largest frame that the cluster takes, in bytes.
  private var frameBytes = FrameRules.frameBytes
  /// The person's quiet hours as the cluster has told or accepted them last.
  private var acceptedHours: QuietHours?
  /// When it has accepted hours last, in the loop's milliseconds.
  private var hoursAcceptedAt: UInt64?
  /// A watch has no cluster.
  private let isWatch: Bool
  /// Whether the program gives a credential for each hello.
  private let renewsCredential: Bool

  init(_ configuration: DeviceConfiguration) {
    hello = configuration.hello
    helloBytes = (try? FrameRules.check(configuration.hello, atMost: .max)) ?? 0
    isWatch = configuration.watchConnectivity?.side == .watch
    renewsCredential = configuration.credential != nil
  }

  /// Takes what the database has. Another person's hours do not hold, and that person's changes are not sent as this one's.
  mutating func restore(_ former: StoredRegistration) {
    stored = former
    if stored.person != hello.user { stored.forgetPerson() }
    stored.person = hello.user
    if let request = stored.quietRequest { _ = changes.add(.quietHours(stored.quietHours), request: request) }
    if let request = stored.signOutRequest { _ = changes.add(.unregister, request: request) }
  }

  // MARK: The person and the program

  /// Whether the person signs out, and the cluster has not confirmed it.
  var isSigningOut: Bool { stored.signOutRequest != nil }

  /// The program registers the device for remote notifications, which takes back a sign-out that is not sent.
  mutating func register() throws(DeviceError) {
    if let environment = stored.environment, environment != hello.environment {
      throw DeviceError(
        .configuration,
        "the token belongs to the environment \(environment.rawValue): name another state file for \(hello.environment?.rawValue ?? "none")"
      )
    }
    guard changes.stay() else { throw DeviceError(.notRunning, "the device is signing out: start another one") }
    (stored.isRegistered, stored.environment, stored.signOutRequest) = (true, hello.environment, nil)
  }

  /// Makes a change; returns the id that its answer has. Throws if the cluster would refuse it, and changes nothing then.
  ///
  /// - Parameter isStopping: whether the device is closed, or has signed out.
  mutating func change(_ change: Change, request: Name, isStopping: Bool) throws(DeviceError) -> Name {
    if change == .unregister, isWatch { throw DeviceError(.configuration, "a watch is not registered: unregister its phone") }
    if !change.isOfHello, isStopping { throw DeviceError(.notRunning, "the device has signed out, or is closed") }
    try FrameRules.check(change.frame(request), atMost: frameBytes)
    if change.isOfHello {
      var changed = hello
      change.apply(to: &changed)
      // A hello that becomes smaller is no worse than before.
      helloBytes = try FrameRules.check(changed, atMost: max(helloBytes, frameBytes - roomForCredential))
      hello = changed
    }
    // The cluster hears nothing more of a device that has signed out.
    let request = isWatch || isStopping ? request : changes.add(change, request: request)
    switch change {
    case .settings(let authorization): stored.authorization = authorization
    case .categories(let categories): stored.categories = categories
    case .quietHours(let hours): setQuietHours(hours, request)
    case .unregister: (stored.person, stored.signOutRequest) = (hello.user, request)
    case .locale: break
    }
    return request
  }

  /// How much larger the hello becomes with the largest credential that may follow the present one, in bytes.
  ///
  /// In frames of a small cluster it may take half.
  private var roomForCredential: Int {
    guard hello.credential != nil || renewsCredential else { return 0 }
    let present = hello.credential?.utf8.count ?? 0
    return max(0, min(FrameLimits.credentialBytes + FrameRules.credentialOverhead, frameBytes / 2) - present)
  }

  /// Takes the person's quiet hours from the phone, on its watch.
  mutating func takeFromPhone(_ hours: QuietHours?) { setQuietHours(hours, nil) }

  /// - Parameter request: the id of the request by which the cluster gets them; nil if it has them.
  private mutating func setQuietHours(_ hours: QuietHours?, _ request: Name?) {
    (stored.quietHours, stored.person, stored.quietRequest) = (hours, hello.user, request)
  }

  // MARK: The cluster

  /// Makes the hello of a new session, with the program's present credential if there is one. Throws the rule that it breaks.
  mutating func greet(with credential: String?) throws(DeviceError) {
    var next = hello
    next.credential = credential ?? hello.credential
    helloBytes = try FrameRules.check(next, atMost: .max)
    hello = next
    changes.helloSent()
  }

  /// Takes the welcome; returns the requests that it answers.
  ///
  /// - Parameters:
  ///   - hours: the person's quiet hours, as the cluster knows them.
  ///   - now: the loop's milliseconds.
  mutating func welcomed(_ hours: QuietHours?, frameBytes: Int, now: UInt64) -> [Name] {
    self.frameBytes = max(frameBytes, FrameRules.leastFrameBytes)
    // Another worker learns of an accepted change a moment later than this device.
    let mayBeOld = hoursAcceptedAt.map { now < $0 + Self.hoursSpread } ?? false
    if !mayBeOld { acceptedHours = hours }
    // What the person has set on this device since is newer.
    if stored.quietRequest == nil { setQuietHours(acceptedHours, nil) }
    return changes.welcomed()
  }

  /// The changes to send now in an open session, in their order.
  mutating func next() -> [(request: Name, change: Change)] { changes.next() }

  /// Takes the cluster's answer; returns the change, or nil for an unknown id.
  mutating func settle(_ request: Name, isAccepted: Bool, now: UInt64) -> Change? {
    guard let change = changes.settle(request) else { return nil }
    if case .quietHours(let hours) = change, isAccepted { (acceptedHours, hoursAcceptedAt) = (hours, now) }
    // Those from before hold again, if the cluster refuses them. The person may have set others since.
    if stored.quietRequest == request { setQuietHours(acceptedHours, nil) }
    if stored.signOutRequest == request { stored.signOutRequest = nil }
    if change == .unregister, isAccepted { unregistered() }
    return change
  }

  /// The cluster has deleted the registration. What belongs to the person who has signed out is not sent any more.
  mutating func unregistered() {
    stored.forgetPerson()
    changes.forgetPerson()
    (stored.isRegistered, stored.person) = (false, nil)
  }

  /// The session has ended: its answers will not come.
  mutating func sessionEnded() { changes.sessionEnded() }
}
