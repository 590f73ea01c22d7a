import Cryptography
import EventLoop
import HTTP
import Worker

/// The settings of TLS at a process's own servers.
enum TLSOptions {
  static let certificate = Setting<String?>(
    "tls.certificate", flag: "tls-certificate", .file,
    "The certificate in PEM, followed by those that have signed it: --listen and --media-listen then take TLS 1.2 and 1.3 only. It is read again when the file changes, and on SIGHUP. Absent: connections without TLS."
  )
  static let key = Setting<String?>(
    "tls.key", flag: "tls-key", .file, "The private key of --tls-certificate, in PEM and without a passphrase; it is read again likewise.")
  static let admin = Setting(
    "tls.admin", flag: "admin-tls", .boolean, default: false,
    "The admin server takes TLS, too, with the same certificate. Probes and Prometheus then need https.")
  static let listenPlain = Setting<SocketAddress?>(
    "fanout.listen-plain", .address,
    "A further address where devices connect without TLS, beside a --listen with TLS. Absent: none.")

  /// For processes with an admin server only.
  static let adminGroup = SettingGroup("TLS", [], advanced: [certificate, key, admin])
  /// For processes that serve devices.
  static let group = SettingGroup("TLS", [], advanced: [certificate, key, admin, listenPlain])
  /// For a cluster in one process.
  static let upGroup = SettingGroup("TLS", [], advanced: [certificate, key])
}

/// The certificate and the key of a process's servers. Open connections keep those that they began with.
struct TLSFiles: Sendable {
  /// The files of both.
  let files: WatchedFiles
  private let identity: InForce<TLSIdentity>

  /// Reads the files of the settings; nil if they name none.
  static func open(_ values: SettingValues, _ logger: Logger) throws -> TLSFiles? {
    let paths = [values[TLSOptions.certificate], values[TLSOptions.key]].compactMap(\.self)
    guard !paths.isEmpty else { return nil }
    let logger = logger.with(component: "tls")
    let (identity, files) = try WatchedFiles.reading("certificate", paths, logger) {
      try read(values, logger)
    } inForce: { identity in
      let now = WallClock.seconds()
      guard identity.expires > now else { return logger.error("the certificate has expired: clients refuse it", ["file": paths[0]]) }
      logger.info("the certificate is in force", ["file": paths[0], "daysLeft": Int((identity.expires - now) / 86_400)])
    }
    return TLSFiles(files: files, identity: identity)
  }

  private static func read(_ values: SettingValues, _ logger: Logger) throws(UsageError) -> TLSIdentity {
    guard let (identity, _, key) = try values.identity(TLSOptions.certificate, TLSOptions.key) else {
      throw UsageError(.missing, "--tls-certificate and --tls-key are missing")
    }
    if key.isExposed {
      logger.warning("others may read the key of the certificate: chmod 600", ["file": key.path])
    }
    return identity
  }

  /// Shows when the certificate in force expires.
  func show(in metrics: MetricRegistry) {
    metrics.show(MetricNames.certificateExpiry) { [identity] in Double(identity.value.expires) }
  }

  /// TLS of one server.
  ///
  /// - Parameter ticketSecrets: the same in all workers that resume each other's sessions; nil for one of this server alone.
  func server(
    ticketSecrets: InForce<KeyRing>? = nil, handshakesPerSecond: Int = TLSServerConfiguration.standardHandshakes
  ) -> TLSServerConfiguration {
    TLSServerConfiguration(
      identity, ticketSecrets: ticketSecrets ?? InForce(KeyRing([KeyRing.Key(RandomBytes.make(count: 32))])),
      handshakesPerSecond: handshakesPerSecond)
  }
}
