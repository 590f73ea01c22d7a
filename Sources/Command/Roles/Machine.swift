import EventLoop
import Glibc
import Notifications

/// What a process knows of the machine it runs on, and of whoever has started it there.
enum Machine {
  /// The host's name; `localhost` when it has none.
  static var hostName: String {
    var bytes = [CChar](repeating: 0, count: 256)
    guard gethostname(&bytes, bytes.count - 1) == 0 else { return "localhost" }
    let name = String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return name.isEmpty ? "localhost" : name
  }

  /// Who types: `user@host`.
  static var person: String {
    let name = getpwuid(getuid()).flatMap { $0.pointee.pw_name }.map { String(cString: $0) } ?? "\(getuid())"
    return "\(name)@\(hostName)"
  }
}

/// Where devices connect, as a URL.
enum DeviceURL {
  static func text(_ address: SocketAddress) -> String { "ws://\(address)\(DeviceProtocol.path)" }
}
