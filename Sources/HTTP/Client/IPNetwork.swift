/// The addresses that begin with the same bits: `10.0.0.0/8`, `fd00::/8`.
public struct IPNetwork: Sendable, Hashable, CustomStringConvertible {
  /// The first address.
  let first: IPAddress
  /// The number of common bits.
  let prefix: Int

  /// Reads a network in CIDR notation (RFC 4632, section 3.1); an address alone is the network of that address.
  public init(_ text: String) throws(HTTPTextFailure) {
    func failure(_ reason: String) -> HTTPTextFailure { HTTPTextFailure("'\(text.prefix(100).description.withoutLineBreaks)' \(reason)") }
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = IPAddress(String(parts[0])) else {
      throw failure("is no network: write an IPv4 or IPv6 address and a prefix length, such as 10.0.0.0/8 or fd00::/8")
    }
    let bits = address.family.bits
    guard parts.count == 2 else {
      self.init(unchecked: address, bits)
      return
    }
    guard (1...3).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let prefix = Int(parts[1]),
      prefix <= bits
    else { throw failure("has no valid prefix length: after the slash comes a number of 0 to \(bits)") }
    let first = Self.first(of: address, prefix)
    guard first == address else { throw failure("has bits beyond its prefix: write \(first)/\(prefix)") }
    self.init(unchecked: address, prefix)
  }

  private init(unchecked first: IPAddress, _ prefix: Int) {
    self.first = first
    self.prefix = prefix
  }

  /// A network that is written in the source.
  init(known text: StaticString) {
    do { try self.init(text.description) } catch { preconditionFailure("a network of this program's own tables: \(error)") }
  }

  private static func first(of address: IPAddress, _ prefix: Int) -> IPAddress {
    let mask = prefix == 0 ? 0 : UInt128.max << UInt128(address.family.bits - prefix)
    return IPAddress(address.family, address.value & mask)
  }

  /// Whether it contains the address; false for the other family.
  func contains(_ address: IPAddress) -> Bool {
    address.family == first.family && Self.first(of: address, prefix) == first
  }

  /// The network in CIDR notation.
  public var description: String { "\(first)/\(prefix)" }
}
