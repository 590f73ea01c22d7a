import Glibc

/// An IPv4 or IPv6 address as bits, without a port or a zone.
public struct IPAddress: Sendable, Hashable, CustomStringConvertible {
  /// The two families.
  public enum Family: Sendable, Hashable {
    /// 32 bits.
    case v4
    /// 128 bits.
    case v6

    /// The number of bits of an address.
    var bits: Int { self == .v4 ? 32 : 128 }
  }

  /// The family.
  let family: Family
  /// The address as a number. IPv4 uses the lower 32 bits.
  let value: UInt128

  init(_ family: Family, _ value: UInt128) { (self.family, self.value) = (family, value) }

  /// Reads an address: IPv4 with four decimal numbers, IPv6 without brackets (RFC 4291, section 2.2). Nil for anything else, a zone included.
  public init?(_ text: String) {
    var v4 = in_addr()
    var v6 = in6_addr()
    if inet_pton(AF_INET, text, &v4) == 1 {
      self.init(.v4, UInt128(UInt32(bigEndian: v4.s_addr)))
    } else if inet_pton(AF_INET6, text, &v6) == 1 {
      self.init(.v6, withUnsafeBytes(of: &v6) { UInt128(bigEndian: $0.loadUnaligned(as: UInt128.self)) })
    } else {
      return nil
    }
  }

  /// Reads the kernel's form, whose `length` bytes begin at `address`; nil for another family.
  init?(_ address: UnsafeRawPointer, length: Int) {
    guard length >= MemoryLayout<sa_family_t>.size else { return nil }
    switch Int32(address.loadUnaligned(as: sa_family_t.self)) {
    case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
      self.init(.v4, UInt128(UInt32(bigEndian: address.loadUnaligned(fromByteOffset: 4, as: UInt32.self))))
    case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
      self.init(.v6, UInt128(bigEndian: address.loadUnaligned(fromByteOffset: 8, as: UInt128.self)))
    default: return nil
    }
  }

  /// The form of `inet_ntop`.
  public var description: String {
    let bytes = withUnsafeBytes(of: value.bigEndian) { Array($0.suffix(family.bits / 8)) }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
      let written = inet_ntop(family == .v4 ? AF_INET : AF_INET6, bytes, text.baseAddress, socklen_t(text.count))
      return written.map { String(cString: $0) } ?? ""
    }
  }
}
