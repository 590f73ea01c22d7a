import CUV
import Glibc

/// The network of a peer. An IPv4 address, or the first 64 bits of an IPv6 address.
///
/// One household or machine has a whole /64 of IPv6 addresses (RFC 6177), so counting single ones would be useless.
public struct PeerNetwork: Sendable, Hashable {
  private let bits: UInt64

  /// Makes it from the kernel's form; nil for another family than IPv4 and IPv6.
  init?(_ address: UnsafePointer<sockaddr>) {
    let raw = UnsafeRawPointer(address)
    switch Int32(address.pointee.sa_family) {
    case AF_INET: bits = UInt64(UInt32(bigEndian: raw.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
    case AF_INET6:
      let high = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      let low = UInt64(bigEndian: raw.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
      // An IPv4 peer of a dual-stack socket (RFC 4291, section 2.5.5.2) counts as its IPv4 address.
      bits = high == 0 && low >> 32 == 0xFFFF ? low & 0xFFFF_FFFF : high
    default: return nil
    }
  }
}
