import Glibc

/// A TCP socket of 127.0.0.1 for connections that carry no byte.
final class LoopbackSocket: Sendable {
  private let descriptor: Int32

  /// Makes a socket without a port.
  init?() {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if descriptor < 0 { return nil }
  }

  deinit { close(descriptor) }

  /// Connects to a listener; false if there is none.
  func connect(to port: UInt16) -> Bool {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 || errno == EINPROGRESS
      }
    }
  }
}
