import Glibc

/// A TCP socket of 127.0.0.1 that is only there: no byte goes through it.
final class LoopbackSocket: Sendable {
  private let descriptor: Int32

  /// A socket without a port.
  init?() {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if descriptor < 0 { return nil }
  }

  /// A socket that keeps a port from everybody but who wants to listen there.
  convenience init?(at port: UInt16) {
    self.init()
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard Self.withAddress(port, { bind(descriptor, $0, $1) }) == 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// Asks a listener for a connection; false when nobody listens.
  func connect(to port: UInt16) -> Bool {
    Self.withAddress(port) { Glibc.connect(descriptor, $0, $1) } == 0 || errno == EINPROGRESS
  }

  private static func withAddress(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
