import CUV

/// What a descriptor is ready for.
public struct Readiness: OptionSet, Sendable {
  /// The bits.
  public let rawValue: Int32

  /// Makes a set from its bits.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// There is something to read, or the peer has gone.
  public static let readable = Readiness(rawValue: Int32(UV_READABLE.rawValue))
  /// There is room to write.
  public static let writable = Readiness(rawValue: Int32(UV_WRITABLE.rawValue))
  /// The peer has closed its half.
  public static let disconnected = Readiness(rawValue: Int32(UV_DISCONNECT.rawValue))
}

/// Watches a descriptor that somebody else owns: loop-confined.
///
/// Files on disk cannot be watched (their descriptors are always ready).
public final class DescriptorWatch: HandleOwner {
  private let loop: EventLoop
  private let handle: Handle<uv_poll_t>
  private var isClosed = false
  private var interest: Readiness = []
  /// Called on the loop with what the descriptor is ready for; an error of the descriptor counts as all of the interest. An owner that
  /// makes its watch before it is complete itself sets it afterwards.
  public var handler: ((Readiness) -> Void)?

  /// Makes a watch that does not watch yet.
  ///
  /// - Parameter descriptor: open until `close` has returned; it becomes non-blocking.
  public init(on loop: EventLoop, descriptor: Int32, _ handler: ((Readiness) -> Void)? = nil) throws(EventLoopError) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.handler = handler
    handle = try Handle("watch descriptor \(descriptor)") { uv_poll_init(loop.uv, $0, descriptor) }
    handle.adopt(by: self)
  }

  /// Watches for these from now on; nothing for an empty set.
  public func watch(_ interest: Readiness) {
    loop.preconditionOnLoop()
    guard !isClosed, interest != self.interest else { return }
    self.interest = interest
    if interest.isEmpty {
      uv_poll_stop(handle.pointer)
      return
    }
    uv_poll_start(handle.pointer, interest.rawValue) { handle, status, events in
      guard let watch = owner(handle, as: DescriptorWatch.self) else { return }
      watch.handler?(status < 0 ? watch.interest : Readiness(rawValue: events))
    }
  }

  /// Ends it; afterwards the descriptor's owner may close it.
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
