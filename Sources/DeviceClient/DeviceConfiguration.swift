public import Extensions
public import Notifications

/// What a device is, and how it behaves.
public struct DeviceConfiguration: Sendable {
  /// Where the cluster is: `ws://HOST:PORT/v1/device`, at least one. Where one drains, fails or does not answer, the next is tried.
  public var urls: [String]
  /// Who it is: the first frame of each connection.
  public var hello: Hello
  /// Gives the credential for each hello, so that one that has expired can be replaced; called on the device's loop, which it must not block
  /// for long. Nil, or an answer of nil: the one that the last hello had.
  public var credential: (@Sendable () -> String?)?
  /// The file that lets it remember over its end; nil: it remembers as long as it runs.
  public var stateFile: String?
  /// Whether it acknowledges what it is given; for tests of the cluster.
  public var acknowledges = true
  /// Whether each frame is told as an event.
  public var tracesFrames = false
  /// The service extensions of its application that run on the device: what they leave is shown, what came is kept. Nil: none.
  public var extensions: ExtensionChain?
  /// How much it remembers.
  public var limits = NotificationStore.Limits()
  /// For the connection, and again for the upgrade and for the welcome.
  public var connectMilliseconds = 10_000

  /// Describes a device.
  public init(urls: [String], hello: Hello) {
    self.urls = urls
    self.hello = hello
  }

  /// Describes a device of a cluster that has one address.
  public init(url: String, hello: Hello) { self.init(urls: [url], hello: hello) }
}
