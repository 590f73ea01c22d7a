import CUV

/// A libuv handle and its owner. From `adopt` until the close callback the handle keeps its owner alive.
struct Handle<C> {
  let pointer: UnsafeMutablePointer<C>

  /// Allocates the handle's memory and initializes it; frees the memory on a failure.
  init(_ operation: @autoclosure () -> String, _ initialize: (UnsafeMutablePointer<C>) -> Int32) throws(EventLoopError) {
    pointer = .allocate(capacity: 1)
    let result = initialize(pointer)
    guard result == 0 else {
      pointer.deallocate()
      throw EventLoopError(result, operation())
    }
    base.pointee.data = nil
  }

  /// Allocates memory for a handle that libuv initializes later.
  init(_ value: C) {
    pointer = .allocate(capacity: 1)
    pointer.initialize(to: value)
    base.pointee.data = nil
  }

  var base: UnsafeMutablePointer<uv_handle_t> { UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: uv_handle_t.self) }
  var stream: UnsafeMutablePointer<uv_stream_t> { UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: uv_stream_t.self) }
  var isClosing: Bool { uv_is_closing(base) != 0 }

  func adopt(by owner: AnyObject) { base.pointee.data = Unmanaged.passRetained(owner).toOpaque() }

  /// Closes the handle. The loop's closing phase frees its memory and releases the owner.
  func close() { closeOwnedHandle(base) }
}

/// The owner of a handle, inside a libuv callback.
@inline(__always)
func owner<Owner: AnyObject>(_ handle: UnsafeMutablePointer<some Any>?, as type: Owner.Type) -> Owner? {
  guard let handle, let data = UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self).pointee.data else { return nil }
  return Unmanaged<Owner>.fromOpaque(data).takeUnretainedValue()
}

/// Gets a call when its handle is closed.
protocol HandleOwner: AnyObject {
  func handleClosed()
}

/// Closes a handle made by `Handle`, unless it is closing already.
func closeOwnedHandle(_ handle: UnsafeMutablePointer<uv_handle_t>) {
  guard uv_is_closing(handle) == 0 else { return }
  uv_close(handle) { handle in
    guard let handle else { return }
    if let data = handle.pointee.data {
      let owner = Unmanaged<AnyObject>.fromOpaque(data).takeRetainedValue()
      (owner as? any HandleOwner)?.handleClosed()
    }
    UnsafeMutableRawPointer(handle).deallocate()
  }
}

/// A value that a C library keeps the address of.
final class Box<Value> {
  let value: Value
  init(_ value: Value) { self.value = value }
}

/// Makes a request of libuv, which keeps a value for its answer.
func makeRequest<C>(keeping value: some Any) -> UnsafeMutablePointer<C> {
  let request = UnsafeMutablePointer<C>.allocate(capacity: 1)
  let bytes = UnsafeMutableRawPointer(request)
  bytes.initializeMemory(as: UInt8.self, repeating: 0, count: MemoryLayout<C>.size)
  bytes.assumingMemoryBound(to: uv_req_t.self).pointee.data = Unmanaged.passRetained(Box(value)).toOpaque()
  return request
}

/// Frees a request that was answered or did not begin; returns what it kept.
@discardableResult
func takeRequest<Value>(_ request: UnsafeMutablePointer<some Any>?, keeping type: Value.Type) -> Value? {
  guard let request, let data = UnsafeMutableRawPointer(request).assumingMemoryBound(to: uv_req_t.self).pointee.data else { return nil }
  request.deallocate()
  return Unmanaged<Box<Value>>.fromOpaque(data).takeRetainedValue().value
}
