import EventLoop
import Glibc

/// A TCP socket of 127.0.0.1 for connections that carry no byte, and the listeners of this process.
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

  /// Turns Nagle's algorithm off for this process's listeners on these ports. The connections that they accept inherit that.
  static func sendAtOnce(toClientsOf ports: Set<UInt16>) {
    for descriptor in ((try? FolderNames.read("/proc/self/fd")) ?? []).compactMap({ Int32($0) }) {
      guard option(SO_ACCEPTCONN, SOL_SOCKET, of: descriptor) == 1, ports.contains(port(of: descriptor)) else { continue }
      var isOn: Int32 = 1
      setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
    }
  }

  private static func option(_ name: Int32, _ level: Int32, of descriptor: Int32) -> Int32 {
    var (value, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
    return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : 0
  }

  /// The local port of a socket; 0 for one without.
  private static func port(of descriptor: Int32) -> UInt16 {
    var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
    let status = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    return status == 0 && address.sin_family == sa_family_t(AF_INET) ? UInt16(bigEndian: address.sin_port) : 0
  }
}
