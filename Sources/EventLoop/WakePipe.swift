import CUV
import Glibc

/// A pipe by which a C library wakes the loop. Loop-confined.
///
/// librdkafka writes to it when one of its queues becomes non-empty (`rd_kafka_queue_io_event_enable`).
public final class WakePipe: HandleOwner {
  private let loop: EventLoop
  private let handle: Handle<uv_poll_t>
  private let reading: Int32
  private var handler: (() -> Void)?
  private var isWoken = false

  /// The end to write to, valid until `close`. Any thread may write any bytes; it does not block.
  public let writeDescriptor: Int32

  /// Opens the pipe. `handler` is called on the loop after bytes have arrived, which are dropped.
  public init(on loop: EventLoop, _ handler: @escaping () -> Void) throws(EventLoopError) {
    loop.preconditionOnLoop()
    var ends: [Int32] = [-1, -1]
    let opened = uv_pipe(&ends, Int32(UV_NONBLOCK_PIPE.rawValue), Int32(UV_NONBLOCK_PIPE.rawValue))
    guard opened == 0 else { throw EventLoopError(opened, "open a pipe") }
    do throws(EventLoopError) {
      handle = try Handle("watch a pipe") { uv_poll_init(loop.uv, $0, ends[0]) }
    } catch {
      for end in ends { Glibc.close(end) }
      throw error
    }
    self.loop = loop
    self.handler = handler
    (reading, writeDescriptor) = (ends[0], ends[1])
    handle.adopt(by: self)
    uv_poll_start(handle.pointer, Readiness.readable.rawValue) { handle, _, _ in owner(handle, as: WakePipe.self)?.drain() }
  }

  /// Makes the loop call the handler in its next turn.
  public func wake() {
    loop.preconditionOnLoop()
    guard handler != nil, !isWoken else { return }
    isWoken = true
    var byte: UInt8 = 1
    // A full pipe is as good: the handler is called anyway.
    _ = Glibc.write(writeDescriptor, &byte, 1)
  }

  private func drain() {
    isWoken = false
    withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { bytes in
      while Glibc.read(reading, bytes.baseAddress, bytes.count) == bytes.count {}
    }
    handler?()
  }

  /// Closes both ends. The writer must have stopped before.
  public func close() {
    loop.preconditionOnLoop()
    guard handler != nil else { return }
    handler = nil
    uv_poll_stop(handle.pointer)
    handle.close()
  }

  func handleClosed() {
    handler = nil
    Glibc.close(reading)
    Glibc.close(writeDescriptor)
  }
}
