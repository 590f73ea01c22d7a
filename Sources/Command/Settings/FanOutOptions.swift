import Cryptography
import EventLoop
import FanOut
import HTTP
import Notifications
import Worker

/// The settings of the fan-out stage.
enum FanOutOptions {
  private static let limits = FanOutSettings.Limits()

  static let listen = Setting(
    "fanout.listen", .address, default: SocketAddress(host: "127.0.0.1", port: 7171),
    "Where devices connect; port 0 takes a free one, which the log shows. All lanes of the process share it.")
  static let keyFile = Setting<String?>(
    "fanout.key-file", .file,
    "The cluster's keys, one in a line ('carillon token key'): devices then need a credential that one of them has signed. It is read again when it changes, and on SIGHUP. Absent: any device may connect, which is for development only."
  )
  static let environment = Setting<DeviceEnvironment?>(
    "fanout.environment", .choice,
    "The environment of the devices that the cluster serves; a device that names the other one is closed with 4019, and one that names none is admitted. Absent: production with --key-file, else development."
  )
  static let connections = Setting(
    "fanout.connections", .integer(1...1_000_000), default: limits.connections, "Maximum number of a lane's connections.")
  static let connectionsPerAddress = Setting(
    "fanout.connections-per-address", .integer(0...1_000_000), default: limits.connectionsPerAddress,
    "Maximum number of a lane's connections from one address (with IPv6 from one /64); further ones get 429. 0: no limit, which is necessary behind a proxy or load balancer that hides the devices' addresses, since X-Forwarded-For is not used."
  )
  static let frames = Setting(
    "fanout.frames-per-second", .integer(10...1_000_000), default: limits.framesPerSecond,
    "Maximum number of a device's frames in a second, pings and fragments of messages included; one frame for each notification that it was sent does not count. With more its connection is closed with 4012. Before its hello a connection may send a hundred in all."
  )
  static let allowedOrigins = Setting(
    "fanout.allowed-origins", .repeated(.origin), default: [],
    "Origins that may open the device socket; * for any. A browser names its page's origin, and some native clients, such as React Native's, the server's. Any other gets 403, unless it is the address, or localhost, that the client uses."
  )
  static let web = Setting("web", .boolean, default: false, "Serves browsers the notification center, at /device/ of --listen.")
  static let window = Setting(
    "fanout.window", .integer(1...1024), default: limits.window,
    "Maximum number of a device's unacknowledged notifications; further ones wait in its mailbox."
  )
  static let hello = Setting(
    "fanout.hello", .duration(.seconds(1)...(.seconds(60))), default: .seconds(limits.helloSeconds),
    "How long a connection may take to send its hello.")
  static let acknowledge = Setting(
    "fanout.acknowledge", .duration(.seconds(5)...(.seconds(600))), default: .seconds(limits.acknowledgeSeconds),
    "How long a device may leave a notification unacknowledged before its connection is closed.")
  static let ping = Setting(
    "fanout.ping", .duration(.seconds(1)...(.seconds(600))), default: .seconds(limits.pingSeconds),
    "How often a silent connection gets a ping, and how often a device that asks for heartbeats gets one.")
  static let refresh = Setting(
    "fanout.refresh", .duration(.seconds(5)...(.seconds(3600))), default: .seconds(limits.refreshSeconds),
    "How often a session resyncs with its presence and its mailbox, jittered.")
  static let outbox = Setting(
    "fanout.outbox", .size(16_384...(64 << 20)), default: limits.outboxBytes,
    "Bytes that may wait for a slow device before its connection is closed.")
  static let reconnect = Setting(
    "fanout.reconnect", .duration(.zero...(.seconds(600))), default: .milliseconds(limits.reconnectMilliseconds),
    "Minimum time over which a drain spreads its devices' reconnections; --reconnects-per-second may need more. Each device is served until its turn, if --drain allows it."
  )
  static let reconnectsPerSecond = Setting(
    "fanout.reconnects-per-second", .integer(1...1_000_000), default: limits.reconnectsPerSecond,
    "Maximum number of devices that a lane admits in a second. Further ones wait for their turn, or, if that would take too long, are told when to reconnect. A drain sends away as many in a second."
  )
  static let handshakesPerSecond = Setting(
    "fanout.handshakes-per-second", .integer(1...1_000_000), default: TLSServerConfiguration.standardHandshakes,
    "Maximum number of TLS handshakes that a lane begins in a second; further ones wait. One takes about half a millisecond of the lane's time."
  )
  static let unreadyFor = Setting(
    "fanout.unready-for", .duration(.zero...(.seconds(300))), default: .seconds(5),
    "How long an ending worker still admits devices although it is not ready, since some load balancers still send them. It is a part of --drain, at most half of it."
  )
  static let silence = Setting(
    "fanout.lane-silence", .duration(.seconds(2)...(.seconds(120))), default: .milliseconds(limits.laneMilliseconds),
    "How long a lane may be silent before its partition of deliveries is free for another.")

  /// The cluster's keys, if there are any.
  ///
  /// - Parameter inForce: called with the keys when they are in force, at first and again.
  static func keys(
    _ values: SettingValues, _ logger: Logger, inForce: @escaping @Sendable (KeyRing) -> Void = { _ in }
  ) throws -> (content: InForce<KeyRing>, files: WatchedFiles)? {
    guard let path = values[keyFile] else { return nil }
    return try WatchedFiles.reading("keys", [path], logger) {
      try SecretFile.keys(InputFile(path: path, givenAt: values.name(of: keyFile), limit: SecretFile.fileBytes), logger)
    } inForce: { keys in
      inForce(keys)
      logger.info(
        "the cluster's keys are in force", ["signs": keys.signing.id, "verify": keys.keys.map(\.id).joined(separator: ", ")])
    }
  }

  /// The keys of a cluster that any device may connect to.
  static func developmentKeys(cluster: String) -> InForce<KeyRing> {
    InForce(KeyRing([KeyRing.Key(Array("development \(cluster)".utf8))]))
  }

  /// The environment that the cluster serves.
  ///
  /// - Parameter hasKey: devices need a credential.
  static func servedEnvironment(_ values: SettingValues, hasKey: Bool) -> DeviceEnvironment {
    values[environment] ?? (hasKey ? .production : .development)
  }

  static let sessions = SettingGroup(
    "Sessions", [keyFile, environment, allowedOrigins],
    advanced: [
      connections, connectionsPerAddress, window, hello, acknowledge, ping, refresh, outbox, frames, reconnect,
      reconnectsPerSecond, handshakesPerSecond, unreadyFor, silence,
    ])
}

extension FanOutSettings {
  /// Reads the settings for the lane of this name.
  ///
  /// - Parameter keys: the cluster's; nil accepts any device.
  init(_ values: SettingValues, _ place: ClusterPlace, listen: SocketAddress, keys: InForce<KeyRing>?, worker: Name) {
    self.init(
      topics: place.topics, kafka: place.kafka, store: place.store, listen: listen,
      admission: keys == nil ? .anyone : .credential, keys: keys ?? FanOutOptions.developmentKeys(cluster: place.name), worker: worker)
    func seconds(_ setting: Setting<Duration>) -> Int { values[setting].wholeMilliseconds / 1000 }
    environment = FanOutOptions.servedEnvironment(values, hasKey: keys != nil)
    limits.window = values[FanOutOptions.window]
    longestLifetime = Int64(seconds(RequestSettings.longestLifetime))
    oneAttemptSeconds = Int64(seconds(RequestSettings.oneAttempt))
    limits.helloSeconds = seconds(FanOutOptions.hello)
    limits.refreshSeconds = seconds(FanOutOptions.refresh)
    limits.acknowledgeSeconds = seconds(FanOutOptions.acknowledge)
    limits.pingSeconds = seconds(FanOutOptions.ping)
    limits.outboxBytes = values[FanOutOptions.outbox]
    limits.connections = values[FanOutOptions.connections]
    limits.connectionsPerAddress = values[FanOutOptions.connectionsPerAddress]
    allowedOrigins = Set(values[FanOutOptions.allowedOrigins])
    limits.framesPerSecond = values[FanOutOptions.frames]
    limits.reconnectsPerSecond = values[FanOutOptions.reconnectsPerSecond]
    limits.reconnectMilliseconds = values[FanOutOptions.reconnect].wholeMilliseconds
    limits.laneMilliseconds = values[FanOutOptions.silence].wholeMilliseconds
    cluster = place.name
  }
}

extension SettingKind where Value == String {
  /// An `Origin` of clients (RFC 6454, section 6.2) in lower case.
  fileprivate static var origin: SettingKind {
    SettingKind(
      placeholder: "ORIGIN,…", allowed: "*, or SCHEME://HOST[:PORT] without a path, such as https://app.example.com",
      read: { text in
        let parts = text.lowercased().split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        let isOrigin = parts.count == 2 && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(isOriginByte) }
        return text == "*" || isOrigin ? text.lowercased() : nil
      })
  }

  private static func isOriginByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "@"), UInt8(ascii: "*"): false
    default: (0x21...0x7E).contains(byte)
    }
  }
}
