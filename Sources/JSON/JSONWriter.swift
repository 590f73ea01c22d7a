/// Appends JSON text to a buffer that it owns and uses again.
///
/// Commas are its own affair: the caller opens containers, gives keys and values, and closes what it opened. Everything that can be
/// handed in comes out as valid text by RFC 8259; only the order of calls is the caller's, and a key in an array or a missing value
/// stays unnoticed here. A writer that is kept (one for each lane) allocates nothing once it has grown to its work.
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
  /// Whether a value has just ended, so that another one in the same container needs a comma.
  var needsComma = false
  /// How many bytes of text there are.
  public private(set) var count = 0

  /// A writer without text, which can take `capacity` bytes before it has to grow.
  public init(capacity: Int = 512) {
    storage = .allocate(byteCount: max(capacity, 64), alignment: 8)
  }

  deinit { storage.deallocate() }

  /// Forgets the text and keeps the memory.
  public mutating func reset() {
    count = 0
    needsComma = false
  }

  /// The text so far, valid during the call.
  public borrowing func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(UnsafeRawBufferPointer(rebasing: storage[0..<count]))
  }

  /// A copy of the text so far as a string.
  public var text: String { String(decoding: storage[0..<count], as: UTF8.self) }

  // MARK: Structure

  /// Begins an object.
  public mutating func openObject() {
    beginValue(bytes: 1)
    put(UInt8(ascii: "{"))
    needsComma = false
  }

  /// Ends the innermost object.
  public mutating func closeObject() { close(UInt8(ascii: "}")) }

  /// Begins an array.
  public mutating func openArray() {
    beginValue(bytes: 1)
    put(UInt8(ascii: "["))
    needsComma = false
  }

  /// Ends the innermost array.
  public mutating func closeArray() { close(UInt8(ascii: "]")) }

  /// A member's name, which needs no escapes; its value is the next call.
  public mutating func key(_ name: StaticString) {
    let count = name.utf8CodeUnitCount
    beginValue(bytes: count &+ 3)
    put(UInt8(ascii: "\""))
    append(UnsafeRawBufferPointer(start: name.utf8Start, count: count))
    put(UInt8(ascii: "\""))
    put(UInt8(ascii: ":"))
    needsComma = false
  }

  /// A member's name that the program does not know beforehand; its value is the next call.
  public mutating func key(text name: String) {
    string(name)
    endKey()
  }

  /// A member's name from UTF-8; its value is the next call.
  public mutating func key(utf8 name: UnsafeRawBufferPointer) {
    string(utf8: name)
    endKey()
  }

  private mutating func endKey() {
    reserve(1)
    put(UInt8(ascii: ":"))
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    reserve(1)
    put(bracket)
    needsComma = true
  }

  // MARK: Values

  /// A string that is one of the program's own words.
  public mutating func string(word value: StaticString) {
    quote(UnsafeRawBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount))
  }

  /// A string.
  public mutating func string(_ value: String) {
    var value = value
    value.withUTF8 { quote(UnsafeRawBufferPointer($0)) }
  }

  /// A string from UTF-8; where the bytes are not UTF-8, U+FFFD stands for each of them.
  public mutating func string(utf8 value: UnsafeRawBufferPointer) { quote(value) }

  /// An integer.
  public mutating func integer(_ value: Int64) {
    beginValue(bytes: 20)
    if value < 0 { put(UInt8(ascii: "-")) }
    putDigits(value.magnitude)
  }

  /// An integer.
  public mutating func integer(_ value: Int) { integer(Int64(value)) }

  /// An integer without a sign.
  public mutating func integer(_ value: UInt64) {
    beginValue(bytes: 20)
    putDigits(value)
  }

  /// A number, so written that it reads back as the same double; `null` when it is not finite, which JSON cannot say.
  public mutating func double(_ value: Double) {
    guard value.isFinite else { return null() }
    var digits = value.description
    digits.withUTF8 { raw(UnsafeRawBufferPointer($0)) }
  }

  /// `true` or `false`.
  public mutating func bool(_ value: Bool) { raw(value ? "true" : "false") }

  /// `null`.
  public mutating func null() { raw("null") }

  /// One value that is JSON text already, byte for byte. The caller answers for its validity: a span, or what another writer wrote.
  public mutating func raw(_ value: UnsafeRawBufferPointer) {
    beginValue(bytes: value.count)
    append(value)
  }

  /// Members of the object that are JSON text already, with a comma between each two. The caller answers for their validity.
  public mutating func members(_ text: UnsafeRawBufferPointer) { raw(text) }

  private mutating func raw(_ word: StaticString) {
    raw(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
  }

  // MARK: Bytes

  /// A piece of text that is neither a value nor followed by a comma of the writer's own.
  mutating func piece(_ bytes: UnsafeRawBufferPointer) {
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

  /// Copies whole runs of what needs no escape; reserves for the usual string, which has none.
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
  /// A member whose value is a string.
  public mutating func member(_ name: StaticString, _ value: String) {
    key(name)
    string(value)
  }

  /// A member whose value is one of the program's own words.
  public mutating func member(_ name: StaticString, word value: StaticString) {
    key(name)
    string(word: value)
  }

  /// A member whose value is an integer.
  public mutating func member(_ name: StaticString, _ value: Int64) {
    key(name)
    integer(value)
  }

  /// A member whose value is an integer.
  public mutating func member(_ name: StaticString, _ value: Int) {
    key(name)
    integer(Int64(value))
  }

  /// A member whose value is true or false.
  public mutating func member(_ name: StaticString, _ value: Bool) {
    key(name)
    bool(value)
  }

  /// A member whose value is JSON text already, byte for byte; the caller answers for its validity.
  public mutating func member(_ name: StaticString, raw value: UnsafeRawBufferPointer) {
    key(name)
    raw(value)
  }
}
