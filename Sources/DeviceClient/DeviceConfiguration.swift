public import Extensions
public import Notifications

/// The properties and the behaviour of a device.
public struct DeviceConfiguration: Sendable {
  /// The cluster's addresses, `wss://HOST:PORT/v1/device`, or `ws://` without TLS; at least one. If one drains, fails or does not answer, the next is tried.
  public var urls: [String]
  /// The certificates in PEM that the cluster's must have been signed by; nil for those of the system.
  public var certificateAuthorities: [UInt8]?
  /// The device's identity: the first frame of each connection.
  ///
  /// Its authorization holds until the person decides; without one it is `notDetermined`, and nothing is shown until the program has asked.
  /// Its categories hold until the program registers others. A state file keeps what the person decided, and the categories for a start whose
  /// hello names none.
  public var hello: Hello
  /// Whether the device makes its own token, which a state file keeps. It connects when the program has registered it for remote
  /// notifications, and from then on at each start.
  public var makesToken = false
  /// Returns the credential for each hello, so that an expired one can be replaced. It is called on the device's loop, and must not block
  /// it for long. If it is nil or returns nil, the last hello's credential is used. One that breaks a rule is not sent: the event
  /// `unreachable` names the rule, and the device asks again.
  public var credential: (@Sendable () -> String?)?
  /// The SQLite database that keeps the state after the device's end; nil keeps it only in memory, and stores no attachments. SQLite has
  /// further files beside it, and the folder with `-attachments` after the name has the attachments.
  public var stateFile: String?
  /// The limits of the state file.
  public var stateLimits = StateLimits()
  /// Whether it acknowledges deliveries; for tests of the cluster.
  public var acknowledges = true
  /// Whether each frame is an event.
  public var tracesFrames = false
  /// The service extensions of its application that run on the device. Their result is shown, and the received payload is kept. Nil for
  /// none.
  public var extensions: ExtensionChain?
  /// The program's own service extension, which changes alerts of the cluster before they are shown, after ``extensions``; nil for none.
  ///
  /// It is set here and not later, so that no notification passes it by. It runs on Swift's own threads, several calls at the same time.
  public var serviceExtension: (any ServiceExtension)?
  /// How long a call of the service extension may take: 30 s by default, an hour at most. After that its best attempt is shown.
  public var serviceExtensionMilliseconds = CallBudget.longestMilliseconds
  /// The content extensions of its application, which draw expanded notifications. The first with the category is chosen.
  public var contentExtensions: [ContentExtensionDeclaration] = []
  /// The program's part in notifications; without one all are shown as the person, the screen and the cluster allow. The center's `delegate`
  /// can be set later.
  public var delegate: (any UserNotificationCenterDelegate)?
  /// How long a call of the delegate may take. The device waits no longer, and tells it by the event `unhandled`.
  public var delegateMilliseconds = 30_000
  /// How long a notification waits for its attachments before it is shown without them.
  public var attachmentMilliseconds = 30_000
  /// Asks the person whether the application may notify them in these ways; nil if nobody can be asked.
  public var authorizationPrompt: (@Sendable (Set<Authorization.Option>) async -> Bool)?
  /// The program's channel between a phone and its watch, and which of them this device is; nil if it has no other.
  public var watchConnectivity: WatchConnectivity?
  /// What the program and the screen are doing at the start.
  public var state = ApplicationState.foreground
  /// How often the device looks for what other processes ask of it.
  var commandMilliseconds = 500
  /// The limits of its memory.
  public var limits = NotificationStore.Limits()
  /// The time limit of the connection, and again of the upgrade and of the welcome.
  public var connectMilliseconds = 10_000

  /// Describes a device.
  public init(urls: [String], hello: Hello) {
    self.urls = urls
    self.hello = hello
  }

  /// Describes a device that makes its own token.
  public init(urls: [String], application: Name, user: Name? = nil) {
    let bytes = (0..<DeviceToken.shortest / 2).map { _ in UInt8.random(in: 0...UInt8.max) }
    guard let token = bytes.withUnsafeBytes({ DeviceToken(packed: $0) }) else { preconditionFailure("so many bytes are a token") }
    self.init(urls: urls, hello: Hello(device: token, application: application, user: user))
    makesToken = true
  }

  /// Describes a device of a cluster that has one address.
  public init(url: String, hello: Hello) { self.init(urls: [url], hello: hello) }
}

/// The limits of a device's state file.
public struct StateLimits: Sendable, Hashable {
  /// The most bytes of the file. When it cannot grow, the device stops with an error, and loses nothing.
  public var bytes = 1 << 30
  /// The most bytes of all attachments. A notification whose attachments do not fit is shown without them.
  public var attachmentBytes = 256 << 20
  /// How long a lock of another process is waited for before the device stops with an error.
  public var busyMilliseconds = 5_000

  /// The defaults.
  public init() {}
}
