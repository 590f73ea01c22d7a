import CUV
import Glibc

/// A listening TCP socket: loop-confined.
public final class Listener: HandleOwner {
  private let loop: EventLoop
  private let handle: Handle<uv_tcp_t>
  private var accept: ((Stream) -> Void)?
  private var isPaused = false
  private var waiting = 0

  /// The address it listens at, with the port that was taken for 0.
  public let localAddress: SocketAddress

  /// Listens.
  ///
  /// - Parameters:
  ///   - address: numeric; port 0 takes a free one.
  ///   - backlog: connections that the kernel keeps before they are accepted.
  ///   - reusePort: several loops and processes may listen at the same port, among which the kernel shares the connections.
  ///   - accept: gets each connection on the loop; it sets the handler and starts reading, or closes.
  public init(
    on loop: EventLoop, at address: SocketAddress, backlog: Int = 4096, reusePort: Bool = false, accept: @escaping (Stream) -> Void
  ) throws(EventLoopError) {
    loop.preconditionOnLoop()
    let operation = "listen at \(address)"
    let family = address.host.contains(":") ? AF_INET6 : AF_INET
    let handle = try Handle<uv_tcp_t>(operation) { uv_tcp_init_ex(loop.uv, $0, UInt32(family)) }
    do throws(EventLoopError) {
      if reusePort { try Self.shareport(handle, operation) }
      guard let bound = address.withNumeric({ uv_tcp_bind(handle.pointer, $0, 0) }) else {
        throw EventLoopError(code: .addressNotAvailable, operation: operation, message: "the host must be a numeric address")
      }
      try check(bound, operation)
      let callback: uv_connection_cb = { handle, status in owner(handle, as: Listener.self)?.arrived(status) }
      try check(uv_listen(handle.stream, Int32(clamping: backlog), callback), operation)
      guard let local = socketAddress(handle.pointer, uv_tcp_getsockname) else {
        throw EventLoopError(code: .other, operation: operation, message: "the socket has no address")
      }
      localAddress = local
    } catch {
      handle.close()
      throw error
    }
    self.loop = loop
    self.handle = handle
    self.accept = accept
    handle.adopt(by: self)
  }

  private static func shareport(_ handle: Handle<uv_tcp_t>, _ operation: String) throws(EventLoopError) {
    var descriptor: uv_os_fd_t = -1
    try check(uv_fileno(handle.base, &descriptor), operation)
    var on: Int32 = 1
    if setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, socklen_t(MemoryLayout<Int32>.size)) != 0 {
      throw EventLoopError(code: .other, operation: operation, message: String(cString: strerror(errno)))
    }
  }

  private func arrived(_ status: Int32) {
    guard status == 0, accept != nil else { return }
    // libuv does not accept on while a connection is not taken: pausing is leaving it there.
    if isPaused { waiting += 1 } else { take() }
  }

  private func take() {
    guard let stream = try? Stream(on: loop) else { return }
    if stream.accept(from: handle.stream) { accept?(stream) } else { stream.close() }
  }

  /// Takes no more connections; the kernel keeps up to the backlog of them.
  public func pause() { isPaused = true }

  /// Takes connections again, the waiting ones first.
  public func resume() {
    guard isPaused else { return }
    isPaused = false
    guard accept != nil, waiting > 0 else { return }
    waiting = 0
    take()
  }

  /// Ends listening; accepted connections stay.
  public func close() {
    loop.preconditionOnLoop()
    guard accept != nil else { return }
    accept = nil
    handle.close()
  }

  func handleClosed() { accept = nil }
}
