import Cryptography
import EventLoop
import Glibc
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

/// The certificate and the key of a process's servers. It reads them again when a file changes; open connections keep the former ones.
actor TLSFiles: LoopActor {
  private static let lookMilliseconds = 1_500

  /// What distinguishes two contents of a file.
  private struct FileVersion: Equatable {
    var numbers: [Int] = []

    init(_ path: String?) {
      var facts = stat()
      guard let path, stat(path, &facts) == 0 else { return }
      // Which module has the members of a time differs from build to build.
      let changed = withUnsafeBytes(of: facts.st_mtim) { $0.map { Int($0) } }
      numbers = [Int(bitPattern: facts.st_dev), Int(bitPattern: facts.st_ino), facts.st_size] + changed
    }
  }

  nonisolated let loop = EventLoop(name: "tls")
  private nonisolated let identity: TLSIdentityInForce
  private nonisolated let values: SettingValues
  private nonisolated let logger: Logger
  /// The files as they were read, and as they were at the last look.
  private var (taken, seen): ([FileVersion], [FileVersion])
  private var timer: Timer?
  private var isClosed = false

  /// Reads the files of the settings; nil if they name none.
  static func open(_ values: SettingValues, _ logger: Logger) throws -> TLSFiles? {
    guard values[TLSOptions.certificate] != nil || values[TLSOptions.key] != nil else { return nil }
    return try TLSFiles(values, logger.with(component: "tls"))
  }

  private init(_ values: SettingValues, _ logger: Logger) throws {
    (self.values, self.logger) = (values, logger)
    taken = Self.look(values)
    seen = taken
    identity = TLSIdentityInForce(try Self.read(values, logger))
  }

  private static func look(_ values: SettingValues) -> [FileVersion] {
    [FileVersion(values[TLSOptions.certificate]), FileVersion(values[TLSOptions.key])]
  }

  private static func read(_ values: SettingValues, _ logger: Logger) throws(UsageError) -> TLSIdentity {
    guard let (identity, certificate, key) = try values.identity(TLSOptions.certificate, TLSOptions.key) else {
      throw UsageError(.missing, "--tls-certificate and --tls-key are missing")
    }
    if key.mode & 0o044 != 0 {
      logger.warning("others may read the key of the certificate: chmod 600", ["file": key.path])
    }
    let days = (identity.expires - WallClock.seconds()) / 86_400
    if identity.expires <= WallClock.seconds() {
      logger.error("the certificate has expired: clients refuse it", ["file": certificate.path])
    } else {
      logger.info("the certificate is in force", ["file": certificate.path, "daysLeft": Int(days)])
    }
    return identity
  }

  /// Shows when the certificate in force expires.
  nonisolated func show(in metrics: MetricRegistry) {
    metrics.show(MetricNames.certificateExpiry) { [identity] in Double(identity.identity.expires) }
  }

  /// TLS of one server.
  ///
  /// - Parameter ticketSecret: the same in all workers that resume each other's sessions; nil for one of this server alone.
  nonisolated func server(
    ticketSecret: [UInt8]? = nil, handshakesPerSecond: Int = TLSServerConfiguration.standardHandshakes
  ) -> TLSServerConfiguration {
    TLSServerConfiguration(
      identity, ticketSecret: ticketSecret ?? RandomBytes.make(count: 32), handshakesPerSecond: handshakesPerSecond)
  }

  /// Begins to look for changes of the files.
  func watch() {
    guard timer == nil, !isClosed else { return }
    let timer = Timer(on: loop) { [weak self] in self?.assumeIsolated { $0.lookAgain() } }
    timer.start(after: Self.lookMilliseconds, repeating: Self.lookMilliseconds)
    self.timer = timer
  }

  private func lookAgain() {
    let present = Self.look(values)
    // A second look that is the same: whoever replaces one file after the other has probably finished.
    if present != taken, present == seen { reloadNow() }
    seen = present
  }

  private func reloadNow() {
    taken = Self.look(values)
    do throws(UsageError) { identity.replace(with: try Self.read(values, logger)) } catch {
      logger.error("the certificate and its key cannot be read again; the former ones stay in force", ["error": "\(error)"])
    }
  }

  /// The action of SIGHUP: reads these files again, and others; nil if there are none.
  static func reload(_ files: TLSFiles?, and others: (@Sendable () -> Void)?) -> (@Sendable () -> Void)? {
    guard let files else { return others }
    return {
      others?()
      Task { await files.reloadNow() }
    }
  }

  private func stop() {
    isClosed = true
    timer?.close()
    timer = nil
  }

  /// Ends. Nothing of it may be called afterwards.
  nonisolated func close() async {
    await stop()
    await loop.close()
  }
}
