/// Appends JSON text to a buffer that it owns and reuses.
///
/// The writer adds the commas: the caller opens containers, gives keys and values, and closes what it opened. Every value becomes valid
/// text by RFC 8259. The order of calls is up to the caller: a key in an array or a missing value goes unnoticed. A writer that is kept,
/// one for each lane, allocates nothing once it has grown to its work.
///
///     writer.reset()
///     writer.openObject()
///     writer.member("type", "gap")
///     writer.key("channel")
///     writer.string(channel)
///     writer.closeObject()
///     let frame = writer.withUnsafeBytes { SharedBytes.make($0) }
public struct JSONWriter: ~Copyable {
  private var storage: UnsafeMutableRawBufferPointer
  /// Whether the next value in the container needs a comma.
  private var needsComma = false
  /// The number of bytes of text.
  public private(set) var count = 0

  /// Creates an empty writer with room for `capacity` bytes.
  public init(capacity: Int = 512) {
    storage = .allocate(byteCount: max(capacity, 64), alignment: 8)
  }

  deinit { storage.deallocate() }

  /// Removes the text and keeps the memory.
  public mutating func reset() {
    count = 0
    needsComma = false
  }

  /// Passes the text to `body`. It is valid during the call.
  public borrowing func withUnsafeBytes<Result, Failure>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(rebasing: storage[0..<count]))
  }

  /// The text as a string.
  public var text: String { String(decoding: storage[0..<count], as: UTF8.self) }

  // MARK: Structure

  /// Begins an object.
  public mutating func openObject() { open(UInt8(ascii: "{")) }

  /// Ends the innermost object.
  public mutating func closeObject() { close(UInt8(ascii: "}")) }

  /// Begins an array.
  public mutating func openArray() { open(UInt8(ascii: "[")) }

  /// Ends the innermost array.
  public mutating func closeArray() { close(UInt8(ascii: "]")) }

  /// Writes a member's name without escapes. The next call writes its value.
  public mutating func key(_ name: StaticString) {
    let count = name.utf8CodeUnitCount
    beginValue(bytes: count &+ 3)
    put(UInt8(ascii: "\""))
    append(UnsafeRawBufferPointer(start: name.utf8Start, count: count))
    put(UInt8(ascii: "\""))
    put(UInt8(ascii: ":"))
    needsComma = false
  }

  /// Writes a member's name that may need escapes. The next call writes its value.
  public mutating func key(text name: String) {
    string(name)
    reserve(1)
    put(UInt8(ascii: ":"))
    needsComma = false
  }

  private mutating func open(_ bracket: UInt8) {
    beginValue(bytes: 1)
    put(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    reserve(1)
    put(bracket)
    needsComma = true
  }

  // MARK: Values

  /// Writes a string that is a word of the program.
  public mutating func string(word value: StaticString) {
    quote(UnsafeRawBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount))
  }

  /// Writes a string.
  public mutating func string(_ value: String) { value.utf8Span.span.bytes.withUnsafeBytes { quote($0) } }

  /// Writes a string from UTF-8. Each byte that is not UTF-8 becomes U+FFFD.
  public mutating func string(utf8 value: UnsafeRawBufferPointer) { quote(value) }

  /// Writes an integer.
  public mutating func integer(_ value: Int64) {
    beginValue(bytes: 20)
    if value < 0 { put(UInt8(ascii: "-")) }
    putDigits(value.magnitude)
  }

  /// Writes an integer.
  public mutating func integer(_ value: Int) { integer(Int64(value)) }

  /// Writes an integer without a sign.
  public mutating func integer(_ value: UInt64) {
    beginValue(bytes: 20)
    putDigits(value)
  }

  /// Writes a number that reads back as the same double; `null` unless finite.
  public mutating func double(_ value: Double) {
    guard value.isFinite else { return null() }
    value.description.withBytes { raw($0) }
  }

  /// Writes `true` or `false`.
  public mutating func bool(_ value: Bool) { raw(value ? "true" : "false") }

  /// Writes `null`.
  public mutating func null() { raw("null") }

  /// Writes one value that is JSON text, byte for byte. The caller vouches for its validity.
  public mutating func raw(_ value: UnsafeRawBufferPointer) {
    beginValue(bytes: value.count)
    append(value)
  }

  /// Writes members that are JSON text, separated by commas. The caller vouches for their validity.
  public mutating func members(_ text: UnsafeRawBufferPointer) { raw(text) }

  private mutating func raw(_ word: StaticString) {
    raw(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
  }

  // MARK: Bytes

  /// Appends bytes that are not a value and need no comma.
  private mutating func piece(_ bytes: UnsafeRawBufferPointer) {
    reserve(bytes.count)
    append(bytes)
  }

  @inline(__always)
  private mutating func beginValue(bytes: Int) {
    reserve(bytes &+ 1)
    if needsComma { put(UInt8(ascii: ",")) }
    needsComma = true
  }

  @inline(__always)
  private mutating func reserve(_ bytes: Int) {
    if storage.count &- count < bytes { grow(by: bytes) }
  }

  @inline(never)
  private mutating func grow(by bytes: Int) {
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: max(storage.count * 2, count + bytes), alignment: 8)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[0..<count]))
    storage.deallocate()
    storage = larger
  }

  @inline(__always)
  private mutating func put(_ byte: UInt8) {
    storage[count] = byte
    count &+= 1
  }

  @inline(__always)
  private mutating func append(_ bytes: UnsafeRawBufferPointer) {
    UnsafeMutableRawBufferPointer(rebasing: storage[count..<(count &+ bytes.count)]).copyMemory(from: bytes)
    count &+= bytes.count
  }

  private mutating func putDigits(_ value: UInt64) {
    var rest = value
    var places = 1
    while rest >= 10 {
      rest /= 10
      places &+= 1
    }
    rest = value
    var offset = count &+ places
    count = offset
    repeat {
      let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
      offset &-= 1
      storage[offset] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit)
      rest = quotient
    } while rest > 0
  }

  // MARK: Strings

  /// Copies runs that need no escape. It reserves room for the usual string, which has none.
  private mutating func quote(_ value: UnsafeRawBufferPointer) {
    beginValue(bytes: value.count &+ 2)
    put(UInt8(ascii: "\""))
    var copied = 0
    var cursor = 0
    while cursor < value.count {
      if cursor &+ 8 <= value.count {
        let hits = StringBytes.special(value.loadUnaligned(fromByteOffset: cursor, as: UInt64.self))
        if hits == 0 {
          cursor &+= 8
          continue
        }
        cursor &+= hits.trailingZeroBitCount &>> 3
      }
      let byte = value[cursor]
      if byte >= 0x80 {
        let length = StringBytes.sequenceLength(value, at: cursor, limit: value.count)
        if length > 0 {
          cursor &+= length
          continue
        }
      } else if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
        cursor &+= 1
        continue
      }
      piece(UnsafeRawBufferPointer(rebasing: value[copied..<cursor]))
      escape(byte)
      cursor &+= 1
      copied = cursor
    }
    piece(UnsafeRawBufferPointer(rebasing: value[copied..<cursor]))
    reserve(1)
    put(UInt8(ascii: "\""))
  }

  private mutating func escape(_ byte: UInt8) {
    reserve(6)
    guard byte < 0x80 else {
      for unit in UTF8.encodedReplacementCharacter { put(unit) }
      return
    }
    put(UInt8(ascii: "\\"))
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): put(byte)
    case 0x08: put(UInt8(ascii: "b"))
    case 0x09: put(UInt8(ascii: "t"))
    case 0x0A: put(UInt8(ascii: "n"))
    case 0x0C: put(UInt8(ascii: "f"))
    case 0x0D: put(UInt8(ascii: "r"))
    default:
      put(UInt8(ascii: "u"))
      put(UInt8(ascii: "0"))
      put(UInt8(ascii: "0"))
      put(UInt8(ascii: "0") &+ byte &>> 4)
      let low = byte & 0x0F
      put(low < 10 ? UInt8(ascii: "0") &+ low : UInt8(ascii: "a") &+ low &- 10)
    }
  }
}

/// A name and its value in one call.
extension JSONWriter {
  /// Writes a member whose value is a string.
  public mutating func member(_ name: StaticString, _ value: String) {
    key(name)
    string(value)
  }

  /// Writes a member whose value is a word of the program.
  public mutating func member(_ name: StaticString, word value: StaticString) {
    key(name)
    string(word: value)
  }

  /// Writes a member whose value is an integer.
  public mutating func member(_ name: StaticString, _ value: Int64) {
    key(name)
    integer(value)
  }

  /// Writes a member whose value is an integer.
  public mutating func member(_ name: StaticString, _ value: Int) { member(name, Int64(value)) }

  /// Writes a member whose value is an integer without a sign.
  public mutating func member(_ name: StaticString, _ value: UInt64) {
    key(name)
    integer(value)
  }

  /// Writes a member whose value is true or false.
  public mutating func member(_ name: StaticString, _ value: Bool) {
    key(name)
    bool(value)
  }

  /// Writes a member whose value is a string from UTF-8.
  public mutating func member(_ name: StaticString, utf8 value: UnsafeRawBufferPointer) {
    key(name)
    string(utf8: value)
  }

  /// Writes a member whose value writes itself; none without a value.
  @inlinable
  public mutating func member(_ name: StaticString, _ value: (some JSONWritable)?) {
    guard let value else { return }
    key(name)
    value.write(to: &self)
  }

  /// Writes a member whose value is JSON text, byte for byte. The caller vouches for its validity.
  public mutating func member(_ name: StaticString, raw value: UnsafeRawBufferPointer) {
    key(name)
    raw(value)
  }
}

/// A value that writes itself as JSON.
public protocol JSONWritable {
  /// Appends the value.
  func write(to json: inout JSONWriter)
}

extension JSONWritable {
  /// The value as JSON text.
  package var jsonBytes: [UInt8] {
    var json = JSONWriter()
    write(to: &json)
    return json.withUnsafeBytes { Array($0) }
  }
}

extension Array: JSONWritable where Element: JSONWritable {
  /// Appends the elements as an array.
  public func write(to json: inout JSONWriter) {
    json.openArray()
    for element in self { element.write(to: &json) }
    json.closeArray()
  }
}

extension String: JSONWritable {
  /// Appends a string.
  public func write(to json: inout JSONWriter) { json.string(self) }
}

extension UInt64: JSONWritable {
  /// Appends a number.
  public func write(to json: inout JSONWriter) { json.integer(self) }
}
