import CUV

/// A timer on a loop.
public final class Timer: HandleOwner {
  private let loop: EventLoop
  private let handle: Handle<uv_timer_t>
  private var isClosed = false
  private var isFiring = false
  /// Called on the loop when the timer fires. It may be set after the initializer.
  public var handler: (() -> Void)?

  /// Makes a timer. Without a time it is not running; with one it starts, as by `start`.
  public init(on loop: EventLoop, after milliseconds: Int? = nil, repeating: Int = 0, _ handler: (() -> Void)? = nil) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.handler = handler
    guard let handle = try? Handle<uv_timer_t>("timer", { uv_timer_init(loop.uv, $0) }) else {
      preconditionFailure("making a timer takes no resource that could be missing")
    }
    self.handle = handle
    handle.adopt(by: self)
    if let milliseconds { start(after: milliseconds, repeating: repeating) }
  }

  /// Starts or restarts the timer. libuv calls a timer that its own handler starts with 0 again before anything else has its turn; here that
  /// takes a millisecond.
  ///
  /// - Parameters:
  ///   - milliseconds: until the first call, counted from the loop's present turn.
  ///   - repeating: milliseconds between later calls; 0 for none.
  public func start(after milliseconds: Int, repeating: Int = 0) {
    loop.preconditionOnLoop()
    guard !isClosed else { return }
    let callback: uv_timer_cb = { owner($0, as: Timer.self)?.fire() }
    uv_timer_start(handle.pointer, callback, UInt64(max(isFiring ? 1 : 0, milliseconds)), UInt64(max(0, repeating)))
  }

  private func fire() {
    isFiring = true
    handler?()
    isFiring = false
  }

  /// Starts for one call, unless it already runs and fires no later.
  public func start(noLaterThan milliseconds: Int) {
    loop.preconditionOnLoop()
    guard !isClosed,
      uv_is_active(UnsafeRawPointer(handle.pointer).assumingMemoryBound(to: uv_handle_t.self)) == 0
        || uv_timer_get_due_in(handle.pointer) > UInt64(max(0, milliseconds))
    else { return }
    start(after: milliseconds)
  }

  /// Stops; it can be started again.
  public func stop() {
    loop.preconditionOnLoop()
    guard !isClosed else { return }
    uv_timer_stop(handle.pointer)
  }

  /// Closes the timer and releases its handler. Every timer needs it once.
  public func close() {
    loop.preconditionOnLoop()
    guard !isClosed else { return }
    isClosed = true
    handler = nil
    handle.close()
  }

  func handleClosed() {
    // The end of the loop closes the handle too, and its memory is free now.
    isClosed = true
    handler = nil
  }
}
