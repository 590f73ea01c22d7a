import HTTP
import Notifications

extension HTTPClientConfiguration {
  /// Of the members `networks`, `plaintext` and `certificates`, which all extensions have that ask somebody by HTTP.
  ///
  /// - Parameters:
  ///   - schemes: what `plaintext` allows.
  ///   - connections: how many there are at most.
  ///   - inFlight: how many requests there are at most, those included that wait for a connection.
  init(
    _ settings: inout SettingsObject, hosts: HTTPHostRule, plaintext schemes: Set<HTTPScheme>, connections: (all: Int, perHost: Int),
    inFlight: Int
  ) throws(FieldError) {
    self.init(hosts: hosts)
    var networks: [IPNetwork] = []
    for text in try settings.texts("networks", atMost: 64) {
      do throws(IPNetwork.Failure) { networks.append(try IPNetwork(text)) } catch { throw settings.wrong("networks", error.description) }
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
  /// The reason, and which member of the file changes it.
  var settingsRule: String { code == .addressRefused ? "\(message): \"networks\" must admit it" : message }
}
