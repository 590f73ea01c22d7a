import CUV
import Glibc

/// A host, by number or name, and a port.
public struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
  /// An IPv4 or IPv6 address without brackets, or a name.
  public var host: String
  /// 0 to 65535. A listener replaces 0 by a free port.
  public var port: Int

  /// An address of its parts.
  public init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// Reads `HOST:PORT`, with an IPv6 address in brackets; nil for another form.
  public init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port),
      text[text.index(after: colon)...].allSatisfy(\.isNumber)
    else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("[") && host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
    self.init(host: String(host), port: port)
  }

  /// `HOST:PORT`, with an IPv6 address in brackets.
  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  /// Whether it is a numeric loopback address: 127.0.0.0/8 or ::1.
  public var isLoopback: Bool {
    guard let bytes = numericBytes else { return false }
    return bytes.count == 4 ? bytes[0] == 127 : bytes == Array(repeating: 0, count: 15) + [1]
  }

  /// Whether the host is an address, and no name.
  public var isNumeric: Bool { numericBytes != nil }

  /// Whether it means every address of this machine: 0.0.0.0 or ::.
  public var isAnyAddress: Bool { numericBytes?.allSatisfy { $0 == 0 } ?? false }

  /// The 4 or 16 bytes of the address, in network order; nil for a name.
  private var numericBytes: [UInt8]? {
    withNumeric { address in
      let places = Int32(address.pointee.sa_family) == AF_INET6 ? 8..<24 : 4..<8
      return places.map { UnsafeRawPointer(address).load(fromByteOffset: $0, as: UInt8.self) }
    }
  }

  /// Lends the address in the kernel's form; nil for a name.
  func withNumeric<R>(_ body: (UnsafePointer<sockaddr>) -> R) -> R? {
    var storage = sockaddr_storage()
    let known = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { uv_ip4_addr(host, Int32(port), $0) } == 0
        || pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { uv_ip6_addr(host, Int32(port), $0) } == 0
    }
    guard known else { return nil }
    return withUnsafePointer(to: &storage) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
  }

  /// Reads the kernel's form.
  init?(_ address: UnsafePointer<sockaddr>) {
    let size = 64
    let host = withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { name -> String? in
      guard uv_ip_name(address, name.baseAddress, size) == 0, let base = name.baseAddress else { return nil }
      return String(cString: base)
    }
    guard let host else { return nil }
    // Both families have the port at the same place, in network order.
    let port = UnsafeRawPointer(address).loadUnaligned(fromByteOffset: 2, as: UInt16.self)
    self.init(host: host, port: Int(UInt16(bigEndian: port)))
  }

  /// Lends the address that `ask` writes; nil if `ask` fails, or if `body` answers nil.
  ///
  /// - Parameter ask: gets memory of `sockaddr_storage` and answers 0 after it wrote an address there.
  static func read<R>(_ ask: (UnsafeMutablePointer<sockaddr>) -> Int32, _ body: (UnsafePointer<sockaddr>) -> R?) -> R? {
    var storage = sockaddr_storage()
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { ask($0) == 0 ? body($0) : nil }
    }
  }
}
