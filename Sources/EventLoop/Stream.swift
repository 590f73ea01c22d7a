import CUV
import Glibc

/// How a stream came to its end.
public enum StreamEnd: Sendable {
  /// The peer closed its half, and all that was queued has been written.
  case peerClosed
  /// This side closed it.
  case closed
  /// The connection broke.
  indirect case failed(EventLoopError)
}

/// What a stream tells its owner: always on the loop, never inside one of the owner's own calls of the stream.
public protocol StreamHandler: AnyObject {
  /// Bytes have come; they are valid during the call only.
  func streamReceived(_ bytes: UnsafeRawBufferPointer)
  /// The stream is closed; called once, last. The stream lets go of its handler.
  func streamEnded(_ end: StreamEnd)
  /// All that was written has gone to the kernel.
  func streamDrained()
}

/// One TCP connection: loop-confined.
///
/// Writes are queued without a bound: the owner watches `pendingBytes` and decides what happens when they are too many.
/// All writes of one turn of the loop go out in one system call at its end.
public final class Stream: HandleOwner {
  private enum Phase { case open, finishing, closing }

  private let core: LoopCore
  private let loop: EventLoop
  private let handle: Handle<uv_tcp_t>
  // One beside the other: there are many idle streams, and each takes 128 bytes so.
  private var phase = Phase.open
  private var isGone = false
  private var isReading = false
  private var peerHasClosed = false
  private var isDirty = false
  /// The loop's turn of the last read.
  private var readTurn = UInt64.max
  private var pending = PendingWrites()
  /// Bytes that a write request holds: at most one is under way.
  private var requested = 0
  private var end = StreamEnd.closed
  /// Set by `finish`.
  private var finishing: Finishing?

  /// Who is told what happens; held until the end.
  public var handler: (any StreamHandler)?

  init(on loop: EventLoop) throws(EventLoopError) {
    core = loop.core
    self.loop = loop
    handle = try Handle("make a socket") { uv_tcp_init(loop.uv, $0) }
    handle.adopt(by: self)
  }

  // MARK: Opening

  private final class Connecting {
    var answer: ((Int32) -> Void)?
    init(_ answer: @escaping (Int32) -> Void) { self.answer = answer }
  }

  /// Connects to an address; a name is looked up, and its addresses are tried in order.
  ///
  /// Call it from a task on the loop. The stream does not read until `startReading`.
  /// - Parameter timeoutMilliseconds: for each address.
  public static func connect(on loop: EventLoop, to address: SocketAddress, timeoutMilliseconds: Int) async throws(EventLoopError) -> Stream
  {
    var last = EventLoopError(code: .hostNotFound, operation: "connect \(address)", message: "it has no address")
    for candidate in try await Resolver.resolve(address, on: loop) {
      let stream = try Stream(on: loop)
      let result = await withCheckedContinuation { (continuation: CheckedContinuation<Int32, Never>) in
        stream.connect(candidate, timeoutMilliseconds) { continuation.resume(returning: $0) }
      }
      if result == 0 {
        uv_tcp_nodelay(stream.handle.pointer, 1)
        return stream
      }
      stream.close()
      last = EventLoopError(result, "connect \(candidate)")
    }
    throw last
  }

  private func connect(_ address: SocketAddress, _ timeoutMilliseconds: Int, _ answer: @escaping (Int32) -> Void) {
    let connecting = Connecting(answer)
    let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
    request.initialize(to: uv_connect_t())
    request.pointee.data = Unmanaged.passRetained(connecting).toOpaque()
    let timer = Timer(on: loop) { [self] in
      let answer = connecting.answer
      connecting.answer = nil
      close()
      answer?(Int32(UV_ETIMEDOUT.rawValue))
    }
    let begun = address.withNumeric { raw in
      uv_tcp_connect(
        request, handle.pointer, raw,
        { request, status in
          guard let request, let data = request.pointee.data else { return }
          let connecting = Unmanaged<Connecting>.fromOpaque(data).takeRetainedValue()
          request.deallocate()
          connecting.answer?(status)
          connecting.answer = nil
        })
    }
    guard begun == 0 else {
      Unmanaged.passUnretained(connecting).release()
      request.deallocate()
      timer.close()
      return answer(begun ?? Int32(UV_EINVAL.rawValue))
    }
    connecting.answer = { status in
      timer.close()
      answer(status)
    }
    timer.start(after: timeoutMilliseconds)
  }

  /// A stream to another process: what is written here is read from the descriptor, and the other way round.
  ///
  /// - Returns: a stream that does not read until `startReading`, and the other end, which the caller closes when the process has it.
  public static func pair(on loop: EventLoop) throws(EventLoopError) -> (stream: Stream, other: Int32) {
    let stream = try Stream(on: loop)
    var ends: (Int32, Int32) = (-1, -1)
    let made = withUnsafeMutablePointer(to: &ends) { pair in
      pair.withMemoryRebound(to: Int32.self, capacity: 2) { uv_socketpair(Int32(SOCK_STREAM.rawValue), 0, $0, 0, 0) }
    }
    // Any connected stream socket may be opened so, by libuv's documentation of uv_tcp_open.
    let opened = made == 0 ? uv_tcp_open(stream.handle.pointer, ends.0) : made
    guard opened == 0 else {
      stream.close()
      if made == 0 {
        Glibc.close(ends.0)
        Glibc.close(ends.1)
      }
      throw EventLoopError(opened, "make a pair of sockets")
    }
    return (stream, ends.1)
  }

  /// Takes an accepted connection over; false, and the descriptor is closed, where that fails.
  func take(_ connection: Int32) -> Bool {
    guard uv_tcp_open(handle.pointer, connection) == 0 else {
      Glibc.close(connection)
      return false
    }
    uv_tcp_nodelay(handle.pointer, 1)
    boundUnsent()
    return true
  }

  /// What the kernel keeps for a slow peer before it says that there is no room: it would be megabytes for each, that nobody counts.
  private static let unsentBytes: Int32 = 128 << 10

  /// Where it does not work the stream works as well, with more memory of the kernel.
  private func boundUnsent() {
    guard let descriptor else { return }
    var bytes = Self.unsentBytes
    _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &bytes, socklen_t(MemoryLayout<Int32>.size))
  }

  /// The number of the stream's descriptor, as long as the connection stands.
  ///
  /// The system gives the lowest number that is free. So the process has at least as many descriptors open at that moment.
  public var descriptor: Int32? {
    guard !isGone, !handle.isClosing else { return nil }
    var descriptor: uv_os_fd_t = -1
    return uv_fileno(handle.base, &descriptor) == 0 ? descriptor : nil
  }

  /// The peer's address, as long as the connection stands.
  public var peerAddress: SocketAddress? {
    withPeer { SocketAddress($0) }
  }

  /// The peer's network, as long as the connection stands: without making a text of the address.
  public var peerNetwork: PeerNetwork? {
    withPeer { PeerNetwork($0) }
  }

  private func withPeer<R>(_ body: (UnsafePointer<sockaddr>) -> R?) -> R? {
    guard !isGone, !handle.isClosing else { return nil }
    return SocketAddress.read(
      { address in
        var size = Int32(MemoryLayout<sockaddr_storage>.size)
        return uv_tcp_getpeername(handle.pointer, address, &size)
      }, body)
  }

  // MARK: Reading

  /// Hands what comes to the handler from now on.
  public func startReading() {
    guard phase == .open, !isReading, !peerHasClosed, !handle.isClosing else { return }
    isReading = true
    uv_read_start(
      handle.stream,
      { handle, _, buffer in
        // libuv reads on while a buffer is filled; without one it stops. So a turn takes one buffer of each stream, and nobody's flood
        // makes the others wait.
        guard let stream = owner(handle, as: Stream.self), let buffer, stream.readTurn != stream.loop.turns else { return }
        stream.readTurn = stream.loop.turns
        let shared = stream.core.readBuffer
        let count = min(shared.count, stream.finishing?.unread ?? .max)
        buffer.pointee = uv_buf_t(base: shared.baseAddress?.assumingMemoryBound(to: CChar.self), len: count)
      },
      { handle, count, _ in owner(handle, as: Stream.self)?.received(count) })
  }

  /// Leaves what comes to the kernel, which slows the peer down.
  public func stopReading() {
    guard isReading else { return }
    isReading = false
    uv_read_stop(handle.stream)
  }

  private func received(_ count: Int) {
    if count == Int(UV_ENOBUFS.rawValue) { return }
    if count > 0 {
      if let finishing {
        finishing.unread -= count
        if finishing.isExhausted { leaveUnread(finishing) }
      } else if phase == .open {
        handler?.streamReceived(UnsafeRawBufferPointer(rebasing: core.readBuffer[..<count]))
      }
    } else if count == Int(UV_EOF.rawValue) {
      peerHasClosed = true
      stopReading()
      end = phase == .finishing ? .closed : .peerClosed
      if pendingBytes == 0 { shut() }
    } else if count < 0 {
      fail(Int32(count), "read")
    }
  }

  // MARK: Writing

  /// Bytes queued and not yet taken by the kernel.
  public var pendingBytes: Int { pending.bytes + requested }

  /// Queues bytes; what is written after the end is dropped.
  public func write(_ bytes: SharedBytes) {
    guard phase == .open, bytes.count > 0 else { return }
    pending.append(bytes)
    schedule()
  }

  private func schedule() {
    guard !isDirty, requested == 0 else { return }
    isDirty = true
    core.unwritten.append(self)
  }

  /// Drops queued bytes of which none has gone out yet; a buffer that was begun is still written whole.
  public func discardPending() { pending.discard() }

  /// Writes what is queued: at once what the kernel takes, the rest when the socket has room.
  func flush() {
    isDirty = false
    guard phase != .closing, requested == 0 else { return }
    while !pending.isEmpty {
      let (entries, bytes) = pending.fill(core.vector)
      let written = uv_try_write(handle.stream, core.vector.baseAddress, UInt32(entries))
      if written < 0 && written != UV_EAGAIN.rawValue { return fail(written, "write") }
      if written > 0 { pending.advance(Int(written)) }
      if written < bytes { return request() }
    }
    drained()
  }

  private final class WriteRequest {
    let stream: Stream
    let buffers: [SharedBytes]
    init(_ stream: Stream, _ buffers: [SharedBytes]) {
      self.stream = stream
      self.buffers = buffers
    }
  }

  /// The socket is full: libuv waits for room and writes; the request owns the buffers until then.
  private func request() {
    let (entries, bytes) = pending.fill(core.vector)
    let request = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)
    request.initialize(to: uv_write_t())
    request.pointee.data = Unmanaged.passRetained(WriteRequest(self, pending.take(entries))).toOpaque()
    requested = bytes
    let result = uv_write(request, handle.stream, core.vector.baseAddress, UInt32(entries)) { request, status in
      guard let request, let data = request.pointee.data else { return }
      let write = Unmanaged<WriteRequest>.fromOpaque(data).takeRetainedValue()
      request.deallocate()
      write.stream.wrote(status)
    }
    if result < 0 {
      if let data = request.pointee.data { Unmanaged<WriteRequest>.fromOpaque(data).release() }
      request.deallocate()
      requested = 0
      fail(result, "write")
    }
  }

  private func wrote(_ status: Int32) {
    requested = 0
    guard phase != .closing else { return }
    if status < 0 { return fail(status, "write") }
    if pending.isEmpty { drained() } else { schedule() }
  }

  private func drained() {
    switch phase {
    case .open:
      if peerHasClosed { return shut() }
      handler?.streamDrained()
    case .finishing: halfClose()
    case .closing: break
    }
  }

  // MARK: Ending

  /// What a stream still reads after `finish`, and until when it stands.
  private final class Finishing {
    let deadline: Timer
    let end: UInt64
    /// Bytes of the peer that may still be read.
    var unread: Int

    init(_ deadline: Timer, end: UInt64, unread: Int) { (self.deadline, self.end, self.unread) = (deadline, end, unread) }

    var isExhausted: Bool { unread <= 0 }
  }

  /// How long a peer that sends too much after `finish` is left unread before its connection is reset.
  private static let unreadMilliseconds: UInt64 = 1_000

  /// Writes out all that is queued, closes this half, waits for the peer's end, then closes.
  ///
  /// Until then it reads and drops what the peer sends. A socket that is closed with unread bytes is reset, and with some systems a reset
  /// takes the last bytes away from a peer that has not read them yet.
  ///
  /// - Parameters:
  ///   - milliseconds: after this long it is closed all the same.
  ///   - maximum: bytes of the peer that it reads at most. The connection of a peer that sends more is reset a second later, or when the
  ///     peer's system has all that was written.
  public func finish(withinMilliseconds milliseconds: Int, readingAtMost maximum: Int = .max) {
    guard phase == .open, !handle.isClosing else { return }
    phase = .finishing
    let timer = Timer(on: loop) { [unowned self] in finishingEnded() }
    timer.start(after: milliseconds)
    finishing = Finishing(timer, end: loop.milliseconds() + UInt64(max(0, milliseconds)), unread: maximum)
    if pendingBytes == 0 { halfClose() }
  }

  private func halfClose() {
    if peerHasClosed { return shut() }
    let request = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
    request.initialize(to: uv_shutdown_t())
    let result = uv_shutdown(request, handle.stream) { request, _ in request?.deallocate() }
    guard result == 0 else {
      request.deallocate()
      return shut()
    }
    if let finishing, finishing.isExhausted { return leaveUnread(finishing) }
    if !isReading {
      phase = .open
      startReading()
      phase = .finishing
    }
  }

  /// Stops reading; once all is written, the peer has little time left.
  private func leaveUnread(_ finishing: Finishing) {
    stopReading()
    if pendingBytes == 0 { waitUnread(finishing) }
  }

  private func waitUnread(_ finishing: Finishing) {
    let now = loop.milliseconds()
    finishing.deadline.start(after: Int(min(Self.unreadMilliseconds, finishing.end - min(now, finishing.end))))
  }

  private func finishingEnded() {
    guard let finishing, finishing.isExhausted else { return close() }
    // A reset drops what is on its way to a slow peer.
    let isOnItsWay = descriptor.map { carillon_unacknowledged($0) > 0 } ?? false
    if isOnItsWay, loop.milliseconds() < finishing.end { waitUnread(finishing) } else { reset() }
  }

  /// Closes at once and tells the peer by a reset, so that the kernel keeps nothing of the connection.
  private func reset() {
    if let descriptor {
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
    close()
  }

  /// Closes at once; what is queued is dropped.
  public func close() {
    guard phase != .closing else { return }
    if case .peerClosed = end { end = .closed }
    shut()
  }

  private func fail(_ result: Int32, _ operation: String) {
    end = .failed(EventLoopError(result, operation))
    shut()
  }

  private func shut() {
    guard phase != .closing else { return }
    phase = .closing
    isReading = false
    pending = PendingWrites()
    finishing?.deadline.close()
    finishing = nil
    if !isGone { handle.close() }
  }

  func handleClosed() {
    isGone = true
    phase = .closing
    finishing?.deadline.close()
    finishing = nil
    let handler = self.handler
    self.handler = nil
    handler?.streamEnded(end)
  }
}
