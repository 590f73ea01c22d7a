/// Bytes that grow at the end, in one allocation that is kept and reused.
struct CommandBuffer: ~Copyable {
  private(set) var base: UnsafeMutableRawPointer
  private(set) var capacity: Int
  private(set) var count = 0

  init(capacity: Int) {
    self.capacity = max(64, capacity)
    base = .allocate(byteCount: self.capacity, alignment: 8)
  }

  deinit { base.deallocate() }

  /// Valid until the next change.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  @inline(__always)
  mutating func reserve(_ more: Int) {
    if count + more > capacity { grow(more) }
  }

  private mutating func grow(_ more: Int) {
    var larger = capacity
    while larger < count + more { larger *= 2 }
    resize(larger)
  }

  private mutating func resize(_ size: Int) {
    let other = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 8)
    other.copyMemory(from: base, byteCount: count)
    base.deallocate()
    base = other
    capacity = size
  }

  @inline(__always)
  mutating func append(_ byte: UInt8) {
    reserve(1)
    base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    count += 1
  }

  @inline(__always)
  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    reserve(bytes.count)
    (base + count).copyMemory(from: start, byteCount: bytes.count)
    count += bytes.count
  }

  @inline(__always)
  mutating func appendLineEnd() {
    append(UInt8(ascii: "\r"))
    append(UInt8(ascii: "\n"))
  }

  @inline(__always)
  mutating func append(decimal value: Int64) {
    var magnitude = value.magnitude
    let digits = decimalDigits(of: magnitude)
    reserve(digits + 1)
    if value < 0 { append(UInt8(ascii: "-")) }
    var position = count + digits
    repeat {
      position -= 1
      base.storeBytes(of: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: magnitude % 10), toByteOffset: position, as: UInt8.self)
      magnitude /= 10
    } while magnitude > 0
    count += digits
  }

  /// Appends a copy of some of its own bytes.
  mutating func appendCopy(of range: Range<Int>) {
    reserve(range.count)
    (base + count).copyMemory(from: base + range.lowerBound, byteCount: range.count)
    count += range.count
  }

  /// Opens an uninitialized gap of `size` bytes before the byte at `position`.
  mutating func openGap(of size: Int, at position: Int) {
    reserve(size)
    (base + position + size).copyMemory(from: base + position, byteCount: count - position)
    count += size
  }

  /// Removes bytes at the end.
  mutating func truncate(to size: Int) { count = min(count, size) }

  /// Removes the first bytes; the others move to the front.
  mutating func removeFirst(_ removed: Int) {
    base.copyMemory(from: base + removed, byteCount: count - removed)
    count -= removed
  }

  /// Removes all bytes.
  ///
  /// Memory beyond `kept` is halved each time that less than a quarter of it was used. A caller that soon needs as much again would
  /// otherwise get new pages from the kernel each time.
  mutating func removeAll(keeping kept: Int) {
    let used = count
    count = 0
    if capacity > kept, used < capacity / 4 { resize(max(64, kept, capacity / 2)) }
  }
}

/// The number of decimal digits of a number.
@inline(__always)
func decimalDigits(of magnitude: UInt64) -> Int {
  var digits = 1
  var rest = magnitude
  while rest >= 10 {
    rest /= 10
    digits += 1
  }
  return digits
}
