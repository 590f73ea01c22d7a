import CUV

/// The readiness of a descriptor.
public struct Readiness: OptionSet, Sendable {
  /// The bits.
  public let rawValue: Int32

  /// Makes a set from its bits.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// Bytes can be read, or the peer has closed.
  public static let readable = Readiness(rawValue: Int32(UV_READABLE.rawValue))
  /// Bytes can be written.
  public static let writable = Readiness(rawValue: Int32(UV_WRITABLE.rawValue))
}

/// Watches a descriptor that another object owns.
///
/// Files on disk cannot be watched (their descriptors are always ready).
public final class DescriptorWatch: HandleOwner {
  private let loop: EventLoop
  private let handle: Handle<uv_poll_t>
  private var isClosed = false
  private var interest: Readiness = []
  /// Called on the loop with the readiness. An error of the descriptor counts as all requested kinds, again and again until `close` or
  /// until nothing is watched. It may be set after the initializer.
  public var handler: ((Readiness) -> Void)?

  /// Makes a watch that is not active yet.
  ///
  /// - Parameter descriptor: stays open until `close` has returned. It becomes non-blocking.
  public init(on loop: EventLoop, descriptor: Int32, _ handler: ((Readiness) -> Void)? = nil) throws(EventLoopError) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.handler = handler
    handle = try Handle("watch descriptor \(descriptor)") { uv_poll_init(loop.uv, $0, descriptor) }
    handle.adopt(by: self)
  }

  /// Watches for these kinds from now on; an empty set stops it.
  public func watch(_ interest: Readiness) {
    loop.preconditionOnLoop()
    guard !isClosed, interest != self.interest else { return }
    self.interest = interest
    if interest.isEmpty {
      uv_poll_stop(handle.pointer)
      return
    }
    poll()
  }

  private func poll() {
    uv_poll_start(handle.pointer, interest.rawValue) { handle, status, events in
      guard let watch = owner(handle, as: DescriptorWatch.self) else { return }
      guard status < 0 else { return watch.handler?(Readiness(rawValue: events)) ?? () }
      // libuv has stopped. What arrived before the error may take several turns to read.
      watch.handler?(watch.interest)
      if !watch.isClosed, !watch.interest.isEmpty { watch.poll() }
    }
  }

  /// Closes the watch. Afterwards the owner may close the descriptor.
  public func close() {
    loop.preconditionOnLoop()
    guard !isClosed else { return }
    isClosed = true
    handler = nil
    uv_poll_stop(handle.pointer)
    handle.close()
  }

  func handleClosed() {
    isClosed = true
    handler = nil
  }
}
