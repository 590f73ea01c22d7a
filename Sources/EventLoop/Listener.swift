import CUV
import Glibc

/// A listening TCP socket.
///
/// It does not let libuv accept, because that would loop for ever in one turn while the process has no free descriptor.
public final class Listener {
  /// The most connections accepted in one turn, so that a flood does not delay the connected peers.
  private static let maximumPerTurn = 256
  /// The pause after a connection found no descriptor or memory, in milliseconds.
  private static let exhaustedMilliseconds = 100
  /// The pause after as many connections as the pace allows, in milliseconds.
  private static let paceMilliseconds = 10

  private let loop: EventLoop
  private let descriptor: Int32
  private let watch: DescriptorWatch
  private let retry: Timer
  private var accept: ((Stream) -> Void)?

  /// How many connections are accepted in a second; nil for no limit. The others wait in the kernel. Who takes a connection spends it, so that
  /// refused ones do not count.
  public var pace: TokenBucket?
  /// How often a connection has waited because of the pace.
  public private(set) var pauses = 0
  private var isPacing = false
  /// The address that it listens on, with the real port instead of 0.
  public let localAddress: SocketAddress

  /// Opens a listener.
  ///
  /// - Parameters:
  ///   - address: numeric; port 0 takes a free one.
  ///   - backlog: the connections that the kernel queues before they are accepted.
  ///   - reusePort: whether several loops and processes may listen on the same port. The kernel distributes the connections.
  ///   - accept: gets each connection on the loop. It sets the handler and starts reading, or closes the connection.
  public init(
    on loop: EventLoop, at address: SocketAddress, backlog: Int = 4096, reusePort: Bool = false, accept: @escaping (Stream) -> Void
  ) throws(EventLoopError) {
    loop.preconditionOnLoop()
    let descriptor = try Self.open(address, backlog: backlog, reusePort: reusePort, "listen at \(address)")
    do throws(EventLoopError) {
      let local = SocketAddress.read {
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return getsockname(descriptor, $0, &size)
      } _: {
        SocketAddress($0)
      }
      guard let local else {
        throw EventLoopError(code: .other, operation: "listen at \(address)", message: "the socket has no address")
      }
      localAddress = local
      watch = try DescriptorWatch(on: loop, descriptor: descriptor)
    } catch {
      Glibc.close(descriptor)
      throw error
    }
    self.loop = loop
    self.descriptor = descriptor
    self.accept = accept
    retry = Timer(on: loop)
    // The watch keeps the listener alive until one of them is closed, so an accepting socket needs no other owner.
    watch.handler = { [self] _ in acceptWaiting() }
    retry.handler = { [watch] in watch.watch(.readable) }
    watch.watch(.readable)
  }

  /// Makes, binds and opens the socket.
  private static func open(
    _ address: SocketAddress, backlog: Int, reusePort: Bool, _ operation: String
  ) throws(EventLoopError) -> Int32 {
    let family = address.host.contains(":") ? AF_INET6 : AF_INET
    let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(family, flags, 0)
    guard descriptor >= 0 else { throw EventLoopError(-errno, operation) }
    var on: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, size)
    let length = socklen_t(family == AF_INET6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size)
    var failure: Int32 = 0
    if reusePort, setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, size) != 0 { failure = errno }
    if failure == 0 {
      guard let bound = address.withNumeric({ bind(descriptor, $0, length) }) else {
        Glibc.close(descriptor)
        throw EventLoopError(code: .addressNotAvailable, operation: operation, message: "the host must be a numeric address")
      }
      if bound != 0 || listen(descriptor, Int32(clamping: backlog)) != 0 { failure = errno }
    }
    guard failure == 0 else {
      Glibc.close(descriptor)
      throw EventLoopError(-failure, operation)
    }
    return descriptor
  }

  private func acceptWaiting() {
    for _ in 0..<Self.maximumPerTurn {
      // `accept` may close the listener.
      guard let accept else { return }
      guard pace?.hasOne(at: loop.milliseconds()) != false else {
        isPacing = true
        return pause(milliseconds: Self.paceMilliseconds)
      }
      let connection = accept4(descriptor, nil, nil, Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
      if isPacing, connection >= 0 { pauses += 1 }
      isPacing = false
      guard connection < 0 else {
        take(connection, accept)
        continue
      }
      switch errno {
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: return pause(milliseconds: Self.exhaustedMilliseconds)
      // No connection is left, or one broke before it was accepted. The next turn accepts the others.
      default: return
      }
    }
  }

  /// Leaves the connections in the kernel, which would report the socket as readable in every turn.
  private func pause(milliseconds: Int) {
    watch.watch([])
    retry.start(after: milliseconds)
  }

  private func take(_ connection: Int32, _ accept: (Stream) -> Void) {
    guard let stream = try? Stream(on: loop) else {
      Glibc.close(connection)
      return
    }
    if stream.take(connection) { accept(stream) } else { stream.close() }
  }

  /// Stops listening. Accepted connections stay open.
  public func close() {
    loop.preconditionOnLoop()
    guard accept != nil else { return }
    accept = nil
    retry.close()
    watch.close()
    Glibc.close(descriptor)
  }

  deinit {
    // The loop has ended before the listener was closed.
    if accept != nil { Glibc.close(descriptor) }
  }
}
