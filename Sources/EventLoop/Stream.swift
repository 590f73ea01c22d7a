import CUV
import Glibc

/// How a stream ended.
public enum StreamEnd: Sendable {
  /// The peer closed its half, and all queued bytes were written.
  case peerClosed
  /// This side closed it.
  case closed
  /// The connection broke.
  indirect case failed(EventLoopError)
}

/// Gets a stream's events. Calls come on the loop, never inside the owner's own calls of the stream.
public protocol StreamHandler: AnyObject {
  /// Bytes arrived. They are valid only during the call.
  func streamReceived(_ bytes: UnsafeRawBufferPointer)
  /// The stream is closed. This is the last call, and the stream releases its handler.
  func streamEnded(_ end: StreamEnd)
  /// The kernel has accepted all written bytes.
  func streamDrained()
}

/// A TCP connection.
///
/// The queue of writes has no limit: the owner watches `pendingBytes` and decides what happens when they are too many. All writes of a turn
/// go out in one system call at its end. With a layer the owner's bytes wait unchanged, and the layer gets the next 64 KiB of them when the
/// kernel has accepted those before.
public final class Stream: HandleOwner {
  private enum Phase { case open, finishing, closing }

  private let core: LoopCore
  private let loop: EventLoop
  private let handle: Handle<uv_tcp_t>
  // The order of these members keeps an idle stream at 128 bytes; there are many.
  private var phase = Phase.open
  private var isGone = false
  private var isReading = false
  private var peerHasClosed = false
  private var isDirty = false
  /// The loop's turn of the last read.
  private var readTurn = UInt64.max
  private var pending = PendingWrites()
  /// The bytes of the running write request; there is at most one.
  private var requested = 0
  private var end = StreamEnd.closed
  /// Nil unless the stream has a layer or finishes.
  private var extra: Extra?

  /// Gets the events; released at the end.
  public var handler: (any StreamHandler)?

  init(on loop: EventLoop) throws(EventLoopError) {
    core = loop.core
    self.loop = loop
    handle = try Handle("make a socket") { uv_tcp_init(loop.uv, $0) }
    handle.adopt(by: self)
  }

  /// The parts that few idle streams have.
  private final class Extra {
    /// Set by `finish`.
    var finishing: Finishing?
    var layer: (any StreamLayer)?
    /// The owner's bytes that the layer has not got yet.
    var plain = PendingWrites()
    /// Whether the layer knows that the owner sends nothing more.
    var isLayerFinished = false
  }

  private var finishing: Finishing? { extra?.finishing }

  private func makeExtra() -> Extra {
    let extra = extra ?? Extra()
    self.extra = extra
    return extra
  }

  // MARK: Opening

  /// Connects to an address. A name is looked up, and its addresses are tried in order.
  ///
  /// Call it from a task on the loop. The stream does not read before `startReading`.
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
    // libuv answers a connection that was given up, too.
    var answer: ((Int32) -> Void)? = answer
    let timer = Timer(on: loop)
    let end = { (status: Int32) in
      timer.close()
      answer?(status)
      answer = nil
    }
    timer.handler = { [self] in
      close()
      end(Int32(UV_ETIMEDOUT.rawValue))
    }
    let request: UnsafeMutablePointer<uv_connect_t> = makeRequest(keeping: end)
    let begun = address.withNumeric { raw in
      uv_tcp_connect(request, handle.pointer, raw) { takeRequest($0, keeping: ((Int32) -> Void).self)?($1) }
    }
    guard begun == 0 else {
      takeRequest(request, keeping: ((Int32) -> Void).self)
      return end(begun ?? Int32(UV_EINVAL.rawValue))
    }
    timer.start(after: timeoutMilliseconds)
  }

  /// Makes a stream to another process. Bytes written here are read from the descriptor, and vice versa.
  ///
  /// - Returns: a stream that does not read before `startReading`, and the other end, which the caller closes when the process has it.
  public static func pair(on loop: EventLoop) throws(EventLoopError) -> (stream: Stream, other: Int32) {
    let stream = try Stream(on: loop)
    var ends: [Int32] = [-1, -1]
    let made = uv_socketpair(Int32(SOCK_STREAM.rawValue), 0, &ends, 0, 0)
    // By libuv's documentation, `uv_tcp_open` accepts any connected stream socket.
    let opened = made == 0 ? uv_tcp_open(stream.handle.pointer, ends[0]) : made
    guard opened == 0 else {
      stream.close()
      if made == 0 { for end in ends { Glibc.close(end) } }
      throw EventLoopError(opened, "make a pair of sockets")
    }
    return (stream, ends[1])
  }

  /// Takes an accepted connection; on a failure it closes the descriptor and answers false.
  func take(_ connection: Int32) -> Bool {
    guard uv_tcp_open(handle.pointer, connection) == 0 else {
      Glibc.close(connection)
      return false
    }
    uv_tcp_nodelay(handle.pointer, 1)
    boundUnsent()
    return true
  }

  /// The bytes that the kernel buffers for a slow peer. By default it would be megabytes for each, uncounted.
  private static let unsentBytes: Int32 = 128 << 10

  /// If it fails, the stream works too, with more of the kernel's memory.
  private func boundUnsent() {
    guard let descriptor else { return }
    var bytes = Self.unsentBytes
    _ = setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &bytes, socklen_t(MemoryLayout<Int32>.size))
  }

  /// The stream's descriptor, while the connection is open.
  ///
  /// The system assigns the lowest free number, so the process has at least as many open descriptors at that moment.
  public var descriptor: Int32? {
    guard !isGone, !handle.isClosing else { return nil }
    var descriptor: uv_os_fd_t = -1
    return uv_fileno(handle.base, &descriptor) == 0 ? descriptor : nil
  }

  /// The peer's network, while the connection is open. It makes no text of the address.
  public var peerNetwork: PeerNetwork? {
    guard !isGone, !handle.isClosing else { return nil }
    return SocketAddress.read(
      { address in
        var size = Int32(MemoryLayout<sockaddr_storage>.size)
        return uv_tcp_getpeername(handle.pointer, address, &size)
      }, { PeerNetwork($0) })
  }

  // MARK: The layer

  /// Bytes of a layer that the peer does not read, beyond which the connection ends. A layer answers some of the peer's bytes by itself.
  private static let maximumLayerBytes = 262_144
  /// The time and the bytes for a peer that must read why its layer has failed.
  private static let failedLayer = (milliseconds: 1_000, bytes: 16_384)

  /// Puts a layer between the owner and the socket; call it before the first read or write.
  public func put(_ layer: any StreamLayer) {
    makeExtra().layer = layer
    sendOutput(of: layer)
  }

  private func receive(_ bytes: UnsafeRawBufferPointer, by layer: any StreamLayer) {
    let state = layer.receive(bytes) { [self] in if phase == .open { handler?.streamReceived($0) } }
    sendOutput(of: layer)
    guard phase == .open else { return }
    switch state {
    case .open: if layer.isReady, extra?.plain.isEmpty == false { schedule() }
    case .ended: peerEnded()
    case .failed(let error):
      end = .failed(error)
      finish(withinMilliseconds: Self.failedLayer.milliseconds, readingAtMost: Self.failedLayer.bytes)
    }
  }

  /// Queues bytes that the layer has made by itself.
  private func sendOutput(of layer: any StreamLayer) {
    guard let output = layer.takeOutput(), phase != .closing else { return }
    pending.append(output)
    schedule()
    if pending.bytes + requested > Self.maximumLayerBytes { fail(Int32(UV_ENOBUFS.rawValue), "write") }
  }

  /// Passes the next of the owner's bytes through the layer, or their end; false if there is nothing to pass.
  private func seal() -> Bool {
    guard let extra, let layer = extra.layer, layer.isReady else { return false }
    let count = extra.plain.take(into: core.readBuffer)
    if count > 0 {
      layer.send(UnsafeRawBufferPointer(rebasing: core.readBuffer[..<count]))
    } else if phase == .finishing, !extra.isLayerFinished {
      extra.isLayerFinished = true
      layer.finish()
    } else {
      return false
    }
    guard let output = layer.takeOutput() else { return false }
    pending.append(output)
    return true
  }

  // MARK: Reading

  /// Passes received bytes to the handler from now on.
  public func startReading() {
    guard phase == .open, !isReading, !peerHasClosed, !handle.isClosing else { return }
    isReading = true
    uv_read_start(
      handle.stream,
      { handle, _, buffer in
        // libuv continues to read while a buffer is filled, and stops without one. So a turn takes one buffer of each stream, and a flood
        // of one peer does not delay the others.
        guard let stream = owner(handle, as: Stream.self), let buffer, stream.readTurn != stream.loop.turns else { return }
        stream.readTurn = stream.loop.turns
        let shared = stream.core.readBuffer
        let count = min(shared.count, stream.finishing?.unread ?? .max)
        buffer.pointee = uv_buf_t(base: shared.baseAddress?.assumingMemoryBound(to: CChar.self), len: count)
      },
      { handle, count, _ in owner(handle, as: Stream.self)?.received(count) })
  }

  /// Leaves received bytes in the kernel, which slows the peer down.
  public func stopReading() {
    guard isReading else { return }
    isReading = false
    uv_read_stop(handle.stream)
  }

  private func received(_ count: Int) {
    if count > 0 {
      if let finishing {
        finishing.unread -= count
        if finishing.isExhausted { leaveUnread(finishing) }
      } else if phase == .open {
        let bytes = UnsafeRawBufferPointer(rebasing: core.readBuffer[..<count])
        if let layer = extra?.layer { receive(bytes, by: layer) } else { handler?.streamReceived(bytes) }
      }
    } else if count == Int(UV_EOF.rawValue) {
      peerEnded()
    } else if count < 0, count != Int(UV_ENOBUFS.rawValue) {
      fail(Int32(count), "read")
    }
  }

  private func peerEnded() {
    peerHasClosed = true
    stopReading()
    if case .failed = end {} else { end = phase == .finishing ? .closed : .peerClosed }
    // Bytes that wait for a handshake can never be sent.
    if let extra, extra.layer?.isReady == false { extra.plain = PendingWrites() }
    if pendingBytes == 0 { shut() }
  }

  // MARK: Writing

  /// Queued bytes that the kernel has not accepted yet.
  public var pendingBytes: Int { pending.bytes + requested + (extra?.plain.bytes ?? 0) }

  /// Queues bytes. After the end they are dropped.
  public func write(_ bytes: SharedBytes) {
    guard phase == .open, bytes.count > 0 else { return }
    if let extra, extra.layer != nil { extra.plain.append(bytes) } else { pending.append(bytes) }
    schedule()
  }

  private func schedule() {
    guard !isDirty, requested == 0 else { return }
    isDirty = true
    core.unwritten.append(self)
  }

  /// Drops queued buffers without a sent byte. A partly sent buffer is still written completely.
  public func discardPending() {
    // The peer's layer needs all bytes that this side's has made.
    if let extra, extra.layer != nil { extra.plain.discard() } else { pending.discard() }
  }

  /// Writes queued bytes: at once as many as the kernel accepts, the rest later.
  func flush() {
    isDirty = false
    guard phase != .closing, requested == 0 else { return }
    repeat {
      while !pending.isEmpty {
        let (entries, bytes) = pending.fill(core.vector)
        let written = uv_try_write(handle.stream, core.vector.baseAddress, UInt32(entries))
        if written < 0 && written != UV_EAGAIN.rawValue { return fail(written, "write") }
        if written > 0 { pending.advance(Int(written)) }
        if written < bytes { return request() }
      }
    } while seal()
    drained()
  }

  /// The buffers of a request, which lie in memory until it is answered.
  private struct Unsent {
    let stream: Stream
    let buffers: [SharedBytes]
  }

  /// The socket is full. libuv waits and writes, and the request keeps the buffers until then.
  private func request() {
    let (entries, bytes) = pending.fill(core.vector)
    let request: UnsafeMutablePointer<uv_write_t> = makeRequest(keeping: Unsent(stream: self, buffers: pending.take(entries)))
    requested = bytes
    let result = uv_write(request, handle.stream, core.vector.baseAddress, UInt32(entries)) { request, status in
      let unsent = takeRequest(request, keeping: Unsent.self)
      unsent?.stream.wrote(status)
    }
    if result < 0 {
      takeRequest(request, keeping: Unsent.self)
      requested = 0
      fail(result, "write")
    }
  }

  private func wrote(_ status: Int32) {
    requested = 0
    guard phase != .closing else { return }
    if status < 0 { return fail(status, "write") }
    if pending.isEmpty, extra?.layer == nil { drained() } else { schedule() }
  }

  private func drained() {
    // The owner's bytes may wait for the layer's handshake.
    guard pendingBytes == 0 else { return }
    switch phase {
    case .open:
      if peerHasClosed { return shut() }
      handler?.streamDrained()
    case .finishing: halfClose()
    case .closing: break
    }
  }

  // MARK: Ending

  /// The limits of a stream after `finish`.
  private final class Finishing {
    let deadline: Timer
    let end: UInt64
    /// How many bytes of the peer may still be read.
    var unread: Int

    init(_ deadline: Timer, end: UInt64, unread: Int) { (self.deadline, self.end, self.unread) = (deadline, end, unread) }

    var isExhausted: Bool { unread <= 0 }
  }

  /// How long a peer that sends too much after `finish` stays unread before the reset, in milliseconds.
  private static let unreadMilliseconds: UInt64 = 1_000

  /// Writes all queued bytes, closes this half, waits for the peer's end, then closes.
  ///
  /// Until then it reads and drops the peer's bytes. A socket that is closed with unread bytes is reset, and on some systems a reset
  /// destroys the last bytes that the peer has not read yet.
  ///
  /// - Parameters:
  ///   - milliseconds: the deadline for closing.
  ///   - maximum: the most bytes of the peer to read. If the peer sends more, the connection is reset a second later, or when the peer's
  ///     system has all written bytes.
  public func finish(withinMilliseconds milliseconds: Int, readingAtMost maximum: Int = .max) {
    guard phase == .open, !handle.isClosing else { return }
    phase = .finishing
    let timer = Timer(on: loop, after: milliseconds) { [unowned self] in finishingEnded() }
    let extra = makeExtra()
    extra.finishing = Finishing(timer, end: loop.milliseconds() + UInt64(max(0, milliseconds)), unread: maximum)
    switch extra.layer?.isReady {
    case nil: if pendingBytes == 0 { halfClose() }
    // The layer tells the peer first.
    case true?: schedule()
    case false?:
      extra.plain = PendingWrites()
      if pendingBytes == 0 { halfClose() }
    }
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

  /// Stops reading. Once all is written, the peer gets little more time.
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
    // A reset would drop bytes that are on their way to a slow peer.
    let isOnItsWay = descriptor.map { carillon_unacknowledged($0) > 0 } ?? false
    if isOnItsWay, loop.milliseconds() < finishing.end { waitUnread(finishing) } else { reset() }
  }

  /// Closes at once with a reset, so that the kernel keeps nothing of the connection.
  private func reset() {
    if let descriptor {
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
    close()
  }

  /// Closes at once. Queued bytes are dropped.
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
    extra = nil
    if !isGone { handle.close() }
  }

  func handleClosed() {
    isGone = true
    phase = .closing
    finishing?.deadline.close()
    extra = nil
    let handler = self.handler
    self.handler = nil
    handler?.streamEnded(end)
  }
}
