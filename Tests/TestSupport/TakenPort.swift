import Glibc

/// A port of 127.0.0.1 that nobody listens at, and that nobody else gets: a socket has its name, and does not listen.
public final class TakenPort: Sendable {
  /// The port.
  public let port: Int
  private let descriptor: Int32

  /// Takes any port that is free.
  public init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var count = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { [descriptor] address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, count) | getsockname(descriptor, $0, &count) }
    }
    guard descriptor >= 0, status == 0 else { throw NoPort(number: errno) }
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  deinit { close(descriptor) }

  private struct NoPort: Error { let number: Int32 }
}
