/// Growable bytes that a lane reuses for every record that it writes.
///
/// The buffer owns its memory and belongs to one thread. It allocates nothing once it has grown to its work. Integers are written with
/// their most significant byte first.
public struct ByteBuffer: ~Copyable {
  private var storage: UnsafeMutableRawBufferPointer
  /// The number of bytes in the buffer.
  public private(set) var count = 0

  /// Creates an empty buffer with room for `capacity` bytes.
  public init(capacity: Int = 1024) {
    storage = .allocate(byteCount: max(capacity, 64), alignment: 8)
  }

  deinit { storage.deallocate() }

  /// Removes the bytes and keeps the memory.
  public mutating func reset() { count = 0 }

  /// Removes the bytes after the first `length` ones.
  public mutating func truncate(to length: Int) { count = min(count, max(length, 0)) }

  /// Passes the bytes to `body`. They are valid during the call.
  public borrowing func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(UnsafeRawBufferPointer(rebasing: storage[0..<count]))
  }

  /// Passes the bytes from `start` on to `body`, valid during the call.
  public borrowing func withUnsafeBytes<Result>(from start: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(UnsafeRawBufferPointer(rebasing: storage[min(max(start, 0), count)..<count]))
  }

  /// Appends a number, the most significant byte first.
  public mutating func append<Value: FixedWidthInteger & UnsignedInteger>(_ value: Value) {
    reserve(MemoryLayout<Value>.size)
    storage.storeBytes(of: value.bigEndian, toByteOffset: count, as: Value.self)
    count &+= MemoryLayout<Value>.size
  }

  /// Overwrites a number that was appended before.
  mutating func replace<Value: FixedWidthInteger & UnsignedInteger>(at offset: Int, with value: Value) {
    precondition(offset >= 0 && offset &+ MemoryLayout<Value>.size <= count, "only what was appended can be replaced")
    storage.storeBytes(of: value.bigEndian, toByteOffset: offset, as: Value.self)
  }

  /// Appends a copy of the bytes.
  public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    append(count: bytes.count) { $0.copyMemory(from: bytes) }
  }

  /// Appends the UTF-8 of a text.
  public mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
  }

  /// Appends `count` bytes, all of which `fill` must write.
  public mutating func append(count added: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    reserve(added)
    fill(UnsafeMutableRawBufferPointer(rebasing: storage[count..<(count &+ added)]))
    count &+= added
  }

  @inline(__always)
  private mutating func reserve(_ added: Int) {
    if storage.count &- count < added { grow(by: added) }
  }

  @inline(never)
  private mutating func grow(by added: Int) {
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(storage.count * 2, count + added), alignment: 8)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[0..<count]))
    storage.deallocate()
    storage = larger
  }
}
