import EventLoop
import Glibc
import Notifications

/// The machine of a process, and the person who started it.
enum Machine {
  /// The host's name; `localhost` if it has none.
  static var hostName: String {
    var bytes = [CChar](repeating: 0, count: 256)
    guard gethostname(&bytes, bytes.count - 1) == 0 else { return "localhost" }
    let name = String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return name.isEmpty ? "localhost" : name
  }

  /// Its name, processors and memory.
  static var description: String {
    let bytes = sysconf(Int32(_SC_PHYS_PAGES)) * sysconf(Int32(_SC_PAGESIZE))
    return "\(hostName), \(TerminalText.count(sysconf(Int32(_SC_NPROCESSORS_ONLN)), "processor")), \(bytes >> 30) GiB of memory"
  }

  /// The person at the terminal: `user@host`.
  static var person: String {
    let name = getpwuid(getuid()).flatMap { $0.pointee.pw_name }.map { String(cString: $0) } ?? "\(getuid())"
    return "\(name)@\(hostName)"
  }
}

/// The devices' address as a URL.
enum DeviceURL {
  static func text(_ address: SocketAddress, isSecure: Bool) -> String { "ws\(isSecure ? "s" : "")://\(address)\(DeviceProtocol.path)" }

  /// The notification center at that address.
  static func page(_ address: SocketAddress, isSecure: Bool) -> String {
    // A browser of this machine. A page of the machine's name would be refused.
    address.localURL("/device/", isSecure: isSecure)
  }
}

extension SocketAddress {
  /// The URL of a path of an HTTP server at this address, for programs of this machine.
  func localURL(_ path: String, isSecure: Bool) -> String {
    "http\(isSecure ? "s" : "")://\(isAnyAddress ? SocketAddress(host: "127.0.0.1", port: port) : self)\(path)"
  }
}
