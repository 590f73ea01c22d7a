import Glibc

/// A plain blocking TCP client of loopback, for tests that send bytes as no client would.
///
/// A read or a write that hangs throws after `hangDeadline`.
public final class RawSocket {
  /// A call of the operating system failed.
  public struct Failure: Error, CustomStringConvertible {
    /// The call and its reason.
    public let description: String
    init(_ call: String) { description = "\(call): \(String(cString: strerror(errno)))" }
  }

  private let descriptor: Int32
  private var isOpen = true

  /// Connects to a port of 127.0.0.1.
  ///
  /// - Parameters:
  ///   - host: an address of loopback to connect from.
  ///   - receiveBufferBytes: makes the kernel take little for a reader that is slow on purpose.
  public init(port: Int, from host: String? = nil, receiveBufferBytes: Int32? = nil) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw Failure("socket") }
    var patience = timeval(tv_sec: hangMilliseconds / 1_000, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, 4)
    if var bytes = receiveBufferBytes { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, 4) }
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = host.map { host in Self.withAddress(host, 0) { bind(descriptor, $0, size) } } ?? 0
    guard bound == 0, Self.withAddress("127.0.0.1", port, { connect(descriptor, $0, size) }) == 0 else {
      // Closed by the deinitializer, which runs for this object, too: closed here as well, it would be another thread's by then.
      throw Failure("connect")
    }
  }

  private static func withAddress(_ host: String, _ port: Int, _ body: (UnsafePointer<sockaddr>) -> Int32) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port)).bigEndian
    address.sin_addr.s_addr = inet_addr(host)
    return withUnsafePointer(to: &address) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
  }

  deinit { close() }

  /// Sends all bytes.
  public func send(_ bytes: [UInt8]) throws {
    // The last use of the socket may be this call: it is not closed in the middle of it.
    defer { withExtendedLifetime(self) {} }
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        buffer.baseAddress.map { Glibc.send(descriptor, $0 + sent, buffer.count - sent, Int32(MSG_NOSIGNAL)) } ?? 0
      }
      guard count > 0 else { throw Failure("send") }
      sent += count
    }
  }

  /// Sends a text.
  public func send(_ text: String) throws { try send(Array(text.utf8)) }

  /// Sends each byte in a segment of its own; an end by the peer meanwhile is no error.
  public func sendByteByByte(_ bytes: [UInt8]) {
    defer { withExtendedLifetime(self) {} }
    for byte in bytes {
      var one = byte
      if Glibc.send(descriptor, &one, 1, Int32(MSG_NOSIGNAL)) != 1 { return }
      // Gives the reader's thread a chance to see the byte alone; nothing depends on it.
      sched_yield()
    }
  }

  /// What comes next, at most `capacity` bytes; empty at the peer's end.
  public func read(atMost capacity: Int = 65_536) throws -> [UInt8] {
    defer { withExtendedLifetime(self) {} }
    var failed = false
    let bytes = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
      var result = 0
      // Linux ends a call with a deadline when the process was stopped meanwhile.
      repeat { result = recv(descriptor, buffer.baseAddress, capacity, 0) } while result < 0 && errno == EINTR
      failed = result < 0
      count = max(0, result)
    }
    if failed { throw Failure("recv") }
    return bytes
  }

  /// Everything up to the peer's end.
  public func readToEnd() throws -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let bytes = try read()
      if bytes.isEmpty { return all }
      all += bytes
    }
  }

  /// Exactly `count` bytes; fewer only at the peer's end.
  public func read(exactly count: Int) throws -> [UInt8] {
    var all: [UInt8] = []
    while all.count < count {
      let bytes = try read(atMost: count - all.count)
      if bytes.isEmpty { break }
      all += bytes
    }
    return all
  }

  /// Reads up to and with `end`, byte by byte, so that nothing behind it is taken.
  public func read(through end: String) throws -> String {
    var all: [UInt8] = []
    let mark = Array(end.utf8)
    while !all.suffix(mark.count).elementsEqual(mark) {
      let byte = try read(atMost: 1)
      if byte.isEmpty { break }
      all += byte
    }
    return String(decoding: all, as: UTF8.self)
  }

  /// Says that nothing more will be sent.
  public func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Closes.
  public func close() {
    if isOpen, descriptor >= 0 { Glibc.close(descriptor) }
    isOpen = false
  }
}
