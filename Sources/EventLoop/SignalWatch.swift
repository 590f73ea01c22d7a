import CUV

/// Calls a handler on the loop when the process gets a signal.
public final class SignalWatch: HandleOwner {
  private let loop: EventLoop
  private let handle: Handle<uv_signal_t>
  private var handler: (() -> Void)?

  /// Replaces the signal's default action.
  ///
  /// - Parameter signal: its number, such as `SIGTERM`.
  public init(on loop: EventLoop, signal: Int32, _ handler: @escaping () -> Void) throws(EventLoopError) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.handler = handler
    handle = try Handle("watch signal \(signal)") { uv_signal_init(loop.uv, $0) }
    handle.adopt(by: self)
    let result = uv_signal_start(handle.pointer, { handle, _ in owner(handle, as: SignalWatch.self)?.handler?() }, signal)
    if result < 0 {
      close()
      throw EventLoopError(result, "watch signal \(signal)")
    }
  }

  /// Restores the signal's default action.
  public func close() {
    loop.preconditionOnLoop()
    guard handler != nil else { return }
    handler = nil
    handle.close()
  }

  func handleClosed() { handler = nil }
}
