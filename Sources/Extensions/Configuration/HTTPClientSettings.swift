import HTTP
import Notifications

extension HTTPClientConfiguration {
  /// Of the members `networks`, `plaintext` and `certificates`, which all extensions have that ask somebody by HTTP.
  ///
  /// - Parameters:
  ///   - schemes: what `plaintext` allows.
  ///   - concurrency: how many requests there are at most.
  init(
    _ settings: inout SettingsObject, hosts: HTTPHostRule, plaintext schemes: Set<HTTPScheme>, concurrency: Int
  ) throws(FieldError) {
    self.init(hosts: hosts)
    var networks: [IPNetwork] = []
    for text in try settings.texts("networks", atMost: 64) {
      do throws(IPNetwork.Failure) { networks.append(try IPNetwork(text)) } catch { throw settings.wrong("networks", error.description) }
    }
    addresses = HTTPAddressRule(admitting: networks)
    if try settings.flag("plaintext") { self.schemes = schemes }
    maximumConnections = min(concurrency, maximumConnections)
    maximumConnectionsPerHost = maximumConnections
    maximumInFlight = concurrency
    certificateFile = try settings.optionalFile("certificates", limit: 1 << 20)?.path
  }
}
