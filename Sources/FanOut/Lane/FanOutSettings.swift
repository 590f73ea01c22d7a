package import Cryptography
package import EventLoop
package import HTTP
package import Kafka
package import Notifications
package import Store
package import Worker

/// The settings of a fan-out lane.
package struct FanOutSettings: Sendable {
  /// The limits and times that the command line sets, with its defaults.
  package struct Limits: Sendable {
    /// The most unacknowledged notifications of a session.
    package var window = 32
    /// How long a connection may take to say hello, in seconds.
    package var helloSeconds = 10
    /// How often a session resyncs with its presence and its mailbox, in seconds, jittered.
    package var refreshSeconds = 60
    /// How long a delivery may stay unacknowledged, in seconds; then the session ends.
    package var acknowledgeSeconds = 60
    /// How often the server pings an idle connection, and sends heartbeats to devices that ask for them, in seconds.
    package var pingSeconds = 30
    /// The most bytes that wait for a slow device.
    package var outboxBytes = 1 << 20
    /// The most connections.
    package var connections = 50_000
    /// The most connections of one address; 0 for no limit, which a lane behind a proxy needs.
    package var connectionsPerAddress = 0
    /// Frames that a device may send in a second, beside one for each frame that it was sent. Before its hello it may send a hundred in
    /// all.
    package var framesPerSecond = 500
    /// The shortest time over which a drained lane spreads its devices' returns, in milliseconds.
    package var reconnectMilliseconds = 1_000
    /// The most devices that a lane admits in a second, or sends away in a second of its drain.
    package var reconnectsPerSecond = 2_000
    /// How long a silent lane counts as alive, in milliseconds.
    package var laneMilliseconds = 10_000

    /// The defaults.
    package init() {}
  }

  /// Who may connect.
  package enum Admission: Sendable {
    /// Any device: for development.
    case anyone
    /// Devices with a credential that was signed with one of the cluster's keys.
    case credential
  }

  /// The cluster's topics.
  var topics: Topics
  /// The Kafka cluster.
  var kafka: KafkaConfiguration
  /// The Redis server, and the number of buckets.
  var store: StoreConfiguration
  /// Where devices connect.
  var listen: SocketAddress
  /// TLS of the devices' connections; nil for none.
  package var tls: TLSServerConfiguration?
  /// Where devices connect without TLS, beside `listen`; nil for nowhere.
  package var listenPlain: SocketAddress?
  /// Who may connect.
  var admission: Admission
  /// Which of the two environments it serves; a device that tells none belongs to it.
  package var environment = DeviceEnvironment.development
  /// The keys of credentials, receipts and links to media: the same in the whole cluster.
  var keys: InForce<KeyRing>
  /// Where devices fetch the media of notifications; nil if the cluster serves none.
  package var media: MediaLinkSettings?
  /// Whether it serves `carillon.js` and the notification center to browsers.
  package var servesWeb = false
  /// The limits of its devices.
  package var limits = Limits()
  /// How long a device remembers ids and revisions: the longest lifetime, in seconds.
  package var longestLifetime = RequestLimits().longestLifetime
  /// How many seconds after its publication a request with `apns-expiration: 0` may still be delivered.
  package var oneAttemptSeconds = ExpirationRule.oneAttemptSeconds
  /// Devices are refused from this descriptor number on: the process needs the rest for itself.
  package var maximumDescriptor = Int32.max
  /// The origins that may open the device socket besides the server's own address, in lower case; `*` for any.
  package var allowedOrigins: Set<String> = []
  /// How often a device may change its registration in a minute. Each change writes a record to `devices`.
  var changesPerMinute = 240
  /// A change that may be one of the time zone counts so often: it writes a record for each schedule that depends on the device's zone.
  var zoneChangeWeight = 8
  /// Whether several lanes and processes listen on the same port.
  package var sharesPort = false
  /// Whether it listens on a free port if the given port is taken.
  package var takesAnotherPort = false
  /// How long Kafka may take to answer a question at the start, in milliseconds.
  var askMilliseconds: Int32 = 3_000
  /// How long Redis and Kafka may take to answer at the start, in milliseconds.
  var startMilliseconds = 30_000
  /// The cluster's name in events.
  package var cluster = "carillon"
  /// The worker's name in events; unique among the lanes.
  var worker: Name

  /// Settings with the defaults of the command line.
  package init(
    topics: Topics, kafka: KafkaConfiguration, store: StoreConfiguration, listen: SocketAddress,
    admission: Admission, keys: InForce<KeyRing>, worker: Name
  ) {
    self.topics = topics
    self.kafka = kafka
    self.store = store
    self.listen = listen
    self.admission = admission
    self.keys = keys
    self.worker = worker
  }
}

extension FanOutSettings {
  /// The largest frame that a device may send.
  static let frameBytes = 64 << 10

  /// The rules of the device socket.
  var webSocket: WebSocketConfiguration {
    func end(_ cause: WebSocketEnd.Cause, _ code: CloseCode) -> WebSocketEnd {
      WebSocketEnd(cause, WebSocketCloseCode(rawValue: code.rawValue), code.reason)
    }
    var webSocket = WebSocketConfiguration()
    webSocket.subprotocols = [DeviceProtocol.subprotocol]
    webSocket.maximumMessageBytes = Self.frameBytes
    webSocket.tooBigCode = WebSocketCloseCode(rawValue: CloseCode.messageTooLarge.rawValue)
    webSocket.maximumOutboxBytes = limits.outboxBytes
    webSocket.outboxFull = end(.outboxFull, .slowConsumer)
    webSocket.tooManyFrames = end(.tooManyFrames, .tooManyFrames)
    webSocket.pingMilliseconds = limits.pingSeconds * 1000
    webSocket.pingTimeout = end(.pingTimeout, .pingTimeout)
    return webSocket
  }
}
