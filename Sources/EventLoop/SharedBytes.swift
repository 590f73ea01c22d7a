/// Immutable bytes in one allocation, shared by reference.
///
/// Bytes for many streams are encoded once and shared. Each stream keeps a reference until the kernel has accepted the bytes.
public final class SharedBytes: Sendable {
  // The buffer's address as a number. It is written only before the object is handed out, and freed only by `deinit`.
  private let address: UInt
  /// The number of bytes.
  public let count: Int

  private init(_ buffer: UnsafeMutableRawBufferPointer, count: Int) {
    address = UInt(bitPattern: buffer.baseAddress)
    self.count = count
  }

  deinit { UnsafeMutableRawPointer(bitPattern: address)?.deallocate() }

  /// Makes `count` bytes, which `fill` must write completely.
  public static func make(count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) -> SharedBytes {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 8)
    fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
    return SharedBytes(buffer, count: count)
  }

  /// Allocates `capacity` bytes; `fill` answers how many it wrote.
  public static func make(capacity: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) -> SharedBytes {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(capacity, 1), alignment: 8)
    let count = fill(buffer)
    precondition(count >= 0 && count <= capacity, "the filler of a SharedBytes claims more bytes than its capacity")
    return SharedBytes(buffer, count: count)
  }

  /// Copies bytes.
  public static func make(_ bytes: UnsafeRawBufferPointer) -> SharedBytes {
    make(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  /// Copies a text's UTF-8.
  public static func make(_ text: String) -> SharedBytes {
    var text = text
    return text.withUTF8 { make(UnsafeRawBufferPointer($0)) }
  }

  /// Lends the bytes.
  public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    try body(UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: address), count: count))
  }

  /// The address of the bytes for system calls, valid while the object is referenced.
  var base: UnsafeMutablePointer<CChar> {
    guard let pointer = UnsafeMutablePointer<CChar>(bitPattern: address) else { preconditionFailure("a buffer has an address") }
    return pointer
  }
}
