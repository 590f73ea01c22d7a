import CUV

/// The wake-up of a loop by a C library. Only ``wake(_:)`` may be called from another thread.
///
/// librdkafka calls it when one of its queues becomes non-empty (`rd_kafka_queue_cb_event_enable`).
public final class Waker: HandleOwner {
  private let loop: EventLoop
  private let handle: Handle<uv_async_t>
  private var handler: (() -> Void)?
  private var stop: (() -> Void)?

  /// Makes a waker.
  ///
  /// - Parameters:
  ///   - stop: makes the C library stop its calls. It is called once, by `close` or at the end of the loop.
  ///   - handler: called on the loop after one or more wake-ups.
  public init(on loop: EventLoop, stop: @escaping () -> Void, _ handler: @escaping () -> Void) throws(EventLoopError) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.handler = handler
    self.stop = stop
    handle = try Handle("make a wake-up") { uv_async_init(loop.uv, $0) { owner($0, as: Waker.self)?.handler?() } }
    handle.adopt(by: self)
  }

  /// The argument of ``wake(_:)``, valid until `close`.
  public var pointer: UnsafeMutableRawPointer { UnsafeMutableRawPointer(handle.pointer) }

  /// Makes the loop of a waker call its handler in its next turn, from any thread.
  public static func wake(_ pointer: UnsafeMutableRawPointer?) {
    if let pointer { uv_async_send(pointer.assumingMemoryBound(to: uv_async_t.self)) }
  }

  /// Makes the loop call the handler in its next turn.
  public func wake() {
    loop.preconditionOnLoop()
    if handler != nil { uv_async_send(handle.pointer) }
  }

  /// Closes it.
  public func close() {
    loop.preconditionOnLoop()
    guard handler != nil else { return }
    handleClosed()
    handle.close()
  }

  func handleClosed() {
    stop?()
    (stop, handler) = (nil, nil)
  }
}
