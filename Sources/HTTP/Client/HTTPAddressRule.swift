/// The addresses that a client may connect to; by default only those of the public internet.
///
/// It is applied to the socket that is about to connect. So the name's addresses of that moment count, and not those of an earlier check.
/// The tables are IANA's registries of special-purpose addresses (RFC 6890), and additions of clouds.
public struct HTTPAddressRule: Sendable, Hashable {
  private typealias Kind = (network: IPNetwork, name: String)

  private static func kinds(_ table: [(network: StaticString, name: String)]) -> [Kind] {
    table.map { (IPNetwork(known: $0.network), $0.name) }
  }

  private static let kinds4 = kinds([
    ("0.0.0.0/8", "unspecified"), ("10.0.0.0/8", "private"), ("100.64.0.0/10", "carrier-grade NAT"),
    ("127.0.0.0/8", "loopback"), ("169.254.0.0/16", "link-local"), ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "protocol assignment"), ("192.0.2.0/24", "documentation"), ("192.31.196.0/24", "AS112"),
    ("192.52.193.0/24", "AMT"), ("192.88.99.0/24", "6to4 relay"), ("192.168.0.0/16", "private"),
    ("192.175.48.0/24", "AS112"), ("198.18.0.0/15", "benchmarking"), ("198.51.100.0/24", "documentation"),
    ("203.0.113.0/24", "documentation"), ("224.0.0.0/4", "multicast"), ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
    // A public number, but the host of an Azure machine answers there with that machine's secrets.
    ("168.63.129.16/32", "metadata"),
  ])

  private static let kinds6 = kinds([
    ("::/128", "unspecified"), ("::1/128", "loopback"), ("64:ff9b:1::/48", "local NAT64"), ("fc00::/7", "unique-local"),
    ("fe80::/10", "link-local"), ("fec0::/10", "site-local"), ("ff00::/8", "multicast"),
    ("2001:db8::/32", "documentation"), ("3fff::/20", "documentation"), ("2001:2::/48", "benchmarking"),
    ("2001::/23", "protocol assignment"), ("2620:4f:8000::/48", "AS112"),
  ])

  private static let teredo = IPNetwork(known: "2001::/32")
  private static let sixToFour = IPNetwork(known: "2002::/16")
  private static let nat64 = IPNetwork(known: "64:ff9b::/96")
  private static let mapped = IPNetwork(known: "::ffff:0:0/96")
  private static let globalUnicast = IPNetwork(known: "2000::/3")

  /// Networks that are allowed in any case.
  var admitted: [IPNetwork]

  /// Makes the default rule with exceptions.
  ///
  /// - Parameter admitted: an IPv4 network also admits the IPv6 forms of its addresses.
  public init(admitting admitted: [IPNetwork] = []) { self.admitted = admitted }

  /// The kind of address that must not be connected to, for an error message; nil if connections are allowed.
  ///
  /// An IPv6 address that contains an IPv4 address is judged by that one, since a gateway may connect to it.
  func refusal(of address: IPAddress) -> String? {
    if admitted.contains(where: { $0.contains(address) }) { return nil }
    let inner = Self.embedded(in: address)
    if !inner.isEmpty {
      return inner.lazy.compactMap { address in refusal(of: address).map { "\($0), \(address) inside" } }.first
    }
    let kinds = address.family == .v4 ? Self.kinds4 : Self.kinds6
    if let kind = kinds.first(where: { $0.network.contains(address) }) { return kind.name }
    // Addresses that IANA has not assigned for public use belong to nobody (RFC 4291, section 2.4).
    return address.family == .v4 || Self.globalUnicast.contains(address) ? nil : "reserved"
  }

  /// The kind of address that excludes a host; nil if none does, and for a name that a resolver must look up.
  func refusal(ofHost host: String) -> String? {
    // Resolvers answer these names by themselves (RFC 6761, section 6.3).
    let isLocal = host == "localhost" || host.hasSuffix(".localhost")
    let refusals = (IPAddress(host).map { [$0] } ?? (isLocal ? Self.localhost : [])).map(refusal(of:))
    return refusals.contains(nil) ? nil : refusals.last ?? nil
  }

  private static let localhost = [IPNetwork(known: "127.0.0.1").first, IPNetwork(known: "::1").first]

  /// The IPv4 addresses inside an IPv6 address.
  private static func embedded(in address: IPAddress) -> [IPAddress] {
    guard address.family == .v6 else { return [] }
    let value = address.value
    func v4(at bit: Int) -> IPAddress { IPAddress(.v4, value >> UInt128(96 - bit) & 0xFFFF_FFFF) }
    // RFC 4291, section 2.5.5.2; RFC 6052, section 2.1.
    if mapped.contains(address) || nat64.contains(address) { return [v4(at: 96)] }
    // RFC 3056, section 2.
    if sixToFour.contains(address) { return [v4(at: 16)] }
    // RFC 4380, section 4: the server, and the client with inverted bits.
    if teredo.contains(address) { return [v4(at: 32), IPAddress(.v4, ~value & 0xFFFF_FFFF)] }
    return []
  }
}
