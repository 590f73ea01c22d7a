import HTTP
import Notifications

extension HTTPClientConfiguration {
  /// Reads the members `networks`, `plaintext` and `certificates` of all extensions that use HTTP.
  ///
  /// - Parameters:
  ///   - schemes: the schemes that `plaintext` allows.
  ///   - connections: the most connections.
  ///   - inFlight: the most requests, with those that wait for a connection.
  init(
    _ settings: inout SettingsObject, hosts: HTTPHostRule, plaintext schemes: Set<HTTPScheme>, connections: (all: Int, perHost: Int),
    inFlight: Int
  ) throws(FieldError) {
    self.init(hosts: hosts)
    var networks: [IPNetwork] = []
    for text in try settings.texts("networks") {
      do throws(HTTPTextFailure) { networks.append(try IPNetwork(text)) } catch { throw settings.wrong("networks", error.description) }
    }
    addresses = HTTPAddressRule(admitting: networks)
    if try settings.flag("plaintext") { self.schemes = schemes }
    (maximumConnections, maximumConnectionsPerHost) = connections
    maximumInFlight = inFlight
    if let (path, bytes) = try settings.optionalFile("certificates", limit: 1 << 20) {
      guard Self.hasCertificate(String(decoding: bytes, as: UTF8.self)) else {
        throw settings.wrong("certificates", "\(path): it has no certificate in PEM")
      }
      certificateFile = path
    }
  }

  /// Whether OpenSSL would find a certificate: it reads three kinds of them.
  private static func hasCertificate(_ text: String) -> Bool {
    ["", "TRUSTED ", "X509 "].contains { text.contains("-----BEGIN \($0)CERTIFICATE-----") }
  }
}

extension HTTPClientError {
  /// The reason, with the member of the file that changes it.
  var settingsRule: String { code == .addressRefused ? "\(message): \"networks\" must admit it" : message }
}
