/// The addresses that a client may connect to; by default only those of the public internet.
///
/// It is applied to the socket that is about to connect. So the name's addresses of that moment count, and not those of an earlier check.
/// The tables are IANA's registries of special-purpose addresses (RFC 6890), and additions of clouds.
public struct HTTPAddressRule: Sendable, Hashable {
  /// The result for an address.
  public enum Decision: Sendable, Hashable {
    /// Connections are allowed.
    case admitted
    /// Connections are not allowed. The text is the kind of address for an error message.
    case refused(String)
  }

  private struct Kind: Sendable {
    let network: IPNetwork
    let name: String

    init(_ network: StaticString, _ name: String) {
      self.network = IPNetwork(known: network)
      self.name = name
    }
  }

  private static let kinds4: [Kind] = [
    Kind("0.0.0.0/8", "unspecified"), Kind("10.0.0.0/8", "private"), Kind("100.64.0.0/10", "carrier-grade NAT"),
    Kind("127.0.0.0/8", "loopback"), Kind("169.254.0.0/16", "link-local"), Kind("172.16.0.0/12", "private"),
    Kind("192.0.0.0/24", "protocol assignment"), Kind("192.0.2.0/24", "documentation"), Kind("192.31.196.0/24", "AS112"),
    Kind("192.52.193.0/24", "AMT"), Kind("192.88.99.0/24", "6to4 relay"), Kind("192.168.0.0/16", "private"),
    Kind("192.175.48.0/24", "AS112"), Kind("198.18.0.0/15", "benchmarking"), Kind("198.51.100.0/24", "documentation"),
    Kind("203.0.113.0/24", "documentation"), Kind("224.0.0.0/4", "multicast"), Kind("255.255.255.255/32", "broadcast"),
    Kind("240.0.0.0/4", "reserved"),
    // A public number, but the host of an Azure machine answers there with that machine's secrets.
    Kind("168.63.129.16/32", "metadata"),
  ]

  private static let kinds6: [Kind] = [
    Kind("::/128", "unspecified"), Kind("::1/128", "loopback"), Kind("64:ff9b:1::/48", "local NAT64"), Kind("fc00::/7", "unique-local"),
    Kind("fe80::/10", "link-local"), Kind("fec0::/10", "site-local"), Kind("ff00::/8", "multicast"),
    Kind("2001:db8::/32", "documentation"), Kind("3fff::/20", "documentation"), Kind("2001:2::/48", "benchmarking"),
    Kind("2001::/23", "protocol assignment"), Kind("2620:4f:8000::/48", "AS112"),
  ]

  private static let teredo = IPNetwork(known: "2001::/32")
  private static let sixToFour = IPNetwork(known: "2002::/16")
  private static let nat64 = IPNetwork(known: "64:ff9b::/96")
  private static let mapped = IPNetwork(known: "::ffff:0:0/96")
  private static let globalUnicast = IPNetwork(known: "2000::/3")

  /// Networks that are allowed in any case.
  public var admitted: [IPNetwork]

  /// Makes the default rule with exceptions.
  ///
  /// - Parameter admitted: an IPv4 network also admits the IPv6 forms of its addresses.
  public init(admitting admitted: [IPNetwork] = []) { self.admitted = admitted }

  /// Whether an address may be connected to.
  ///
  /// An IPv6 address that contains an IPv4 address is judged by that one, since a gateway may connect to it.
  public func decision(on address: IPAddress) -> Decision {
    if admitted.contains(where: { $0.contains(address) }) { return .admitted }
    let inner = Self.embedded(in: address)
    if !inner.isEmpty {
      for address in inner {
        if case .refused(let kind) = decision(on: address) { return .refused("\(kind), \(address) inside") }
      }
      return .admitted
    }
    let kinds = address.family == .v4 ? Self.kinds4 : Self.kinds6
    if let kind = kinds.first(where: { $0.network.contains(address) }) { return .refused(kind.name) }
    // Addresses that IANA has not assigned for public use belong to nobody (RFC 4291, section 2.4).
    return address.family == .v4 || Self.globalUnicast.contains(address) ? .admitted : .refused("reserved")
  }

  /// The kind of address that excludes a host; nil if none does, and for a name that a resolver must look up.
  func refusal(ofHost host: String) -> String? {
    // Resolvers answer these names by themselves (RFC 6761, section 6.3).
    let isLocal = host == "localhost" || host.hasSuffix(".localhost")
    let addresses = IPAddress(host).map { [$0] } ?? (isLocal ? Self.localhost : [])
    var refusal: String?
    for address in addresses {
      guard case .refused(let kind) = decision(on: address) else { return nil }
      refusal = kind
    }
    return refusal
  }

  private static let localhost = [IPNetwork(known: "127.0.0.1").first, IPNetwork(known: "::1").first]

  /// The IPv4 addresses inside an IPv6 address.
  private static func embedded(in address: IPAddress) -> [IPAddress] {
    guard address.family == .v6 else { return [] }
    let value = address.value
    func v4(at bit: Int) -> IPAddress { IPAddress(v4: UInt32(truncatingIfNeeded: value >> UInt128(96 - bit))) }
    // RFC 4291, section 2.5.5.2; RFC 6052, section 2.1.
    if mapped.contains(address) || nat64.contains(address) { return [v4(at: 96)] }
    // RFC 3056, section 2.
    if sixToFour.contains(address) { return [v4(at: 16)] }
    // RFC 4380, section 4: the server, and the client with inverted bits.
    if teredo.contains(address) { return [v4(at: 32), IPAddress(v4: ~UInt32(truncatingIfNeeded: value))] }
    return []
  }
}
