/// Immutable bytes in one allocation, shared by reference.
///
/// What is written to many streams is encoded once and shared: a stream holds a reference until the kernel has taken the bytes.
public final class SharedBytes: Sendable {
  // The buffer's address as a number: it is written only before the object is handed out, and freed only by `deinit`.
  private let address: UInt
  /// How many bytes.
  public let count: Int

  private init(_ buffer: UnsafeMutableRawBufferPointer, count: Int) {
    address = UInt(bitPattern: buffer.baseAddress)
    self.count = count
  }

  deinit { UnsafeMutableRawPointer(bitPattern: address)?.deallocate() }

  /// Makes `count` bytes; `fill` writes all of them.
  public static func make(count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) -> SharedBytes {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(count, 1), alignment: 8)
    fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
    return SharedBytes(buffer, count: count)
  }

  /// Makes room for `capacity` bytes; `fill` answers how many of them it wrote.
  public static func make(capacity: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Int) -> SharedBytes {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(capacity, 1), alignment: 8)
    let count = fill(buffer)
    precondition(count >= 0 && count <= capacity, "the filler of a SharedBytes claims more bytes than it had room for")
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

  /// Where the bytes lie: for system calls, as long as the object is held.
  var base: UnsafeMutablePointer<CChar> {
    guard let pointer = UnsafeMutablePointer<CChar>(bitPattern: address) else { preconditionFailure("a buffer has an address") }
    return pointer
  }
}
