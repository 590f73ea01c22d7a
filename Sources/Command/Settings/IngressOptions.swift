import Cryptography
import EventLoop
import Ingress
import Notifications
import Worker

/// The settings of the ingress.
enum IngressOptions {
  static let listen = Setting(
    "ingress.listen", .address, default: SocketAddress(host: "127.0.0.1", port: 7174),
    "Where publishers send their HTTP requests; port 0 takes a free one, which the log shows. All lanes of the process share it. Without a certificate it speaks plain HTTP: listen on loopback, or behind a proxy that has TLS."
  )
  static let keyFiles = Setting<[String]>(
    "ingress.key-file", .repeated(.file), default: [],
    "Keys that sign publishers' tokens: 'carillon token key' makes a file with one for HS256, and a public key in PEM is for ES256 (P-256) or EdDSA (Ed25519). The token of any of them holds. The files are read again when they change, and on SIGHUP. Absent: any program may publish, which is for development only."
  )
  static let connections = Setting(
    "ingress.connections", .integer(1...100_000), default: IngressSettings.Defaults.connections,
    "Maximum number of a lane's connections. Another one replaces the connection that has been without a request for the longest time.")
  static let bodyBytes = Setting(
    "ingress.body-bytes", .size(65_536...(16 << 20)), default: IngressSettings.Defaults.bodyBytes,
    "The largest body of an HTTP request; a larger one gets 413.")
  static let access = Setting(
    "ingress.access-log", .boolean, default: true, "Logs a line for each request, with its apns-id and the status of the answer.")
  static let unreadyFor = Setting(
    "ingress.unready-for", .duration(.zero...(.seconds(300))), default: .seconds(5),
    "How long an ending worker still takes requests although it is not ready, since some load balancers still send them. It is a part of --drain, at most half of it."
  )

  static let requests = SettingGroup("Publishers", [listen, keyFiles], advanced: [connections, bodyBytes, access, unreadyFor])

  /// Where a public key in PEM begins and ends.
  private static let (publicKey, publicKeyEnd) = ("-----BEGIN", "-----END PUBLIC KEY-----")

  /// The keys that sign publishers' tokens; nil if any program may publish.
  static func keys(_ values: SettingValues, _ logger: Logger) throws -> (content: InForce<[SignatureKey]>, files: WatchedFiles)? {
    guard !values[keyFiles].isEmpty else { return nil }
    return try WatchedFiles.reading("keys", values[keyFiles], logger) {
      try values.files(keyFiles, limit: SecretFile.fileBytes).flatMap { try keys($0, logger) }
    } inForce: { keys in
      logger.info("the publishers' keys are in force", ["verify": keys.map(\.id).joined(separator: ", ")])
    }
  }

  /// The keys of one file: secrets, one in a line, or public keys in PEM, one behind the other.
  private static func keys(_ file: InputFile, _ logger: Logger) throws(Failure) -> [SignatureKey] {
    let text = String(decoding: file.bytes, as: UTF8.self)
    guard text.contains(publicKey) else { return try SecretFile.keys(file, logger).keys.map { SignatureKey(secret: $0) } }
    let parts = text.split(separator: publicKey, omittingEmptySubsequences: false)
    let keys = parts.dropFirst().compactMap { part -> SignatureKey? in
      guard let end = part.firstRange(of: publicKeyEnd), part[end.upperBound...].allSatisfy(\.isWhitespace) else { return nil }
      return SignatureKey(pem: Array((publicKey + part).utf8))
    }
    guard parts[0].allSatisfy(\.isWhitespace), keys.count == parts.count - 1 else {
      throw Failure(
        .wrongUsage,
        "\(file.path) holds no key for tokens: it must have public keys in PEM, of the curve P-256 (ES256) or Ed25519 (EdDSA), and nothing else"
      )
    }
    return keys
  }
}

extension IngressSettings {
  /// Reads the settings of a lane.
  init(_ values: SettingValues, _ place: ClusterPlace, listen: SocketAddress, admission: PublisherAdmission) {
    self.init(topics: place.topics, kafka: place.kafka, listen: listen, admission: admission)
    limits = RequestLimits(values)
  }
}
