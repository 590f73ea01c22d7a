public import EventLoop
import HTTP
public import Kafka
public import Notifications
public import Store
public import Worker

/// What a fan-out lane needs to know.
public struct FanOutSettings: Sendable {
  /// What is not set; the command line has the same.
  public enum Defaults {
    /// Notifications unacknowledged at most per session.
    public static let window = 32
    /// How long a connection may take to say hello, in seconds.
    public static let helloSeconds = 10
    /// How often a session resyncs with its presence and its mailbox, in seconds, jittered.
    public static let refreshSeconds = 60
    /// How long a delivery may stay unacknowledged, in seconds; then the session ends.
    public static let acknowledgeSeconds = 60
    /// How often the server pings an idle connection, in seconds.
    public static let pingSeconds = 30
    /// Bytes that may wait for a slow device.
    public static let outboxBytes = 1 << 20
    /// The largest frame that a device may send.
    public static let frameBytes = 64 << 10
    /// Connections at most.
    public static let connections = 50_000
    /// Connections at most of one address; 0 for no bound, as it must be behind a proxy.
    public static let connectionsPerAddress = 0
    /// Frames of any kind that a device may send in a second, besides one for each that it was sent; a hundred in all before its hello.
    public static let framesPerSecond = 500
    /// What the returns of a drained lane's devices are spread over at least, in milliseconds.
    public static let reconnectMilliseconds = 1_000
    /// Devices that a lane lets in each second at most, and tells to go each second when it drains.
    public static let reconnectsPerSecond = 2_000
    /// How long a silent lane counts as alive, in milliseconds.
    public static let laneMilliseconds = 10_000
  }

  /// Who may connect.
  public enum Admission: Sendable {
    /// Any device: for development.
    case anyone
    /// Devices with a credential that was signed with this key.
    case credential(key: [UInt8])
  }

  /// The cluster's topics.
  public var topics: Topics
  /// Where Kafka is.
  public var kafka: KafkaConfiguration
  /// Where Redis is, and how its keys are spread.
  public var store: StoreConfiguration
  /// Where devices connect.
  public var listen: SocketAddress
  /// Who may connect.
  public var admission: Admission
  /// The key that receipts are signed with: the same in the whole cluster.
  public var receiptKey: [UInt8]
  /// Where devices find the media that notifications come with; nil where the cluster serves none.
  public var media: MediaLinkSettings?
  /// Notifications unacknowledged at most per session.
  public var window = Defaults.window
  /// How long a device remembers ids and revisions: the longest lifetime, in seconds.
  public var longestLifetime = RequestLimits().longestLifetime
  /// How many seconds after its publication a request with `apns-expiration: 0` may still be delivered.
  public var oneAttemptSeconds = ExpirationRule.oneAttemptSeconds
  /// How long a connection may take to say hello, in seconds.
  public var helloSeconds = Defaults.helloSeconds
  /// How often a session resyncs with its presence and its mailbox, in seconds, jittered.
  public var refreshSeconds = Defaults.refreshSeconds
  /// How long a delivery may stay unacknowledged, in seconds; then the session ends.
  public var acknowledgeSeconds = Defaults.acknowledgeSeconds
  /// How often the server pings an idle connection, and sends heartbeats to devices that ask for them, in seconds.
  public var pingSeconds = Defaults.pingSeconds
  /// Bytes that may wait for a slow device.
  public var outboxBytes = Defaults.outboxBytes
  /// The largest frame that a device may send.
  public var frameBytes = Defaults.frameBytes
  /// Connections at most.
  public var connections = Defaults.connections
  /// Devices are refused on a descriptor of this number or a higher one: the process keeps the rest for itself.
  public var maximumDescriptor = Int32.max
  /// Connections at most of one address; 0 for no bound, as it must be behind a proxy.
  public var connectionsPerAddress = Defaults.connectionsPerAddress
  /// The origins that may open the device socket beside the server's own address, in lower case; `*` for any.
  public var allowedOrigins: Set<String> = []
  /// Frames of any kind that a device may send in a second, besides one for each that it was sent; a hundred in all before its hello.
  public var framesPerSecond = Defaults.framesPerSecond
  /// Whether several lanes and processes listen at the same port.
  public var sharesPort = false
  /// Whether it listens at a port of the system's choice when the one it was given is not free.
  public var takesAnotherPort = false
  /// What the returns of a drained lane's devices are spread over at least, in milliseconds.
  public var reconnectMilliseconds = Defaults.reconnectMilliseconds
  /// Devices that a lane lets in each second at most, and tells to go each second when it drains.
  public var reconnectsPerSecond = Defaults.reconnectsPerSecond
  /// How long a silent lane counts as alive, in milliseconds.
  public var laneMilliseconds = Defaults.laneMilliseconds
  /// How long Redis and Kafka may take to answer at the start, in milliseconds.
  public var startMilliseconds = 30_000
  /// What events call the cluster.
  public var cluster = "carillon"
  /// What events call the worker; unique among the lanes.
  public var worker: Name

  /// Settings with the defaults of the command line.
  public init(
    topics: Topics, kafka: KafkaConfiguration, store: StoreConfiguration, listen: SocketAddress,
    admission: Admission, receiptKey: [UInt8], worker: Name
  ) {
    self.topics = topics
    self.kafka = kafka
    self.store = store
    self.listen = listen
    self.admission = admission
    self.receiptKey = receiptKey
    self.worker = worker
  }
}

extension FanOutSettings {
  /// The rules of the device socket.
  var webSocket: WebSocketConfiguration {
    var webSocket = WebSocketConfiguration()
    webSocket.subprotocols = [DeviceProtocol.subprotocol]
    webSocket.maximumMessageBytes = frameBytes
    webSocket.tooBigCode = WebSocketCloseCode(rawValue: CloseCode.messageTooLarge.rawValue)
    webSocket.maximumOutboxBytes = outboxBytes
    webSocket.outboxFullCode = WebSocketCloseCode(rawValue: CloseCode.slowConsumer.rawValue)
    webSocket.outboxFullReason = CloseCode.slowConsumer.reason
    webSocket.tooManyFramesCode = WebSocketCloseCode(rawValue: CloseCode.tooManyFrames.rawValue)
    webSocket.tooManyFramesReason = CloseCode.tooManyFrames.reason
    webSocket.pingMilliseconds = pingSeconds * 1000
    webSocket.pingTimeoutCode = WebSocketCloseCode(rawValue: CloseCode.pingTimeout.rawValue)
    webSocket.pingTimeoutReason = CloseCode.pingTimeout.reason
    return webSocket
  }
}
