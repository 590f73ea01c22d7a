/// Reads and checks a JSON text (RFC 8259), and returns the spans of its values.
///
/// It reads the text once, from front to back.
///
/// The caller drives it: open a container, ask for its keys or elements, take or skip each value, and at the end call `finish()`. The next
/// step skips a value that was not taken, and still checks it. The complete text is known to be valid only when `finish()` has returned.
///
/// The scanner borrows the bytes: it must not outlive the call that owns them. It is a value, so a copy remembers a position. After a fault
/// of the text each further step throws the same error. A step that meets another kind of value (`notAnObject`, `notAnArray`) does not
/// move. So the caller can take the value as another kind. No text makes the scanner trap.
///
/// In addition to the grammar it rejects bytes that are not UTF-8, lone escaped surrogates, a byte order mark, and nesting beyond its
/// limit. It accepts numbers of any size. It also accepts duplicate keys, and returns each of them.
public struct JSONScanner {
  /// What may follow at `position`.
  @usableFromInline
  enum Phase: UInt8 {
    /// A value: at the beginning, after a key, at an element.
    case value
    /// The first key or element of the container just opened, or its end.
    case opened
    /// A comma or the container's end; at the top, the text's end.
    case after
  }

  /// The largest possible limit: one bit of `objects` for each level.
  @usableFromInline static var deepest: Int { 64 }

  @usableFromInline let bytes: UnsafeRawBufferPointer
  @usableFromInline let limit: Int
  @usableFromInline let depthLimit: Int
  @usableFromInline var position: Int
  @usableFromInline var depth = 0
  /// The kinds of the open containers, innermost in the lowest bit: 1 is an object.
  @usableFromInline var objects: UInt64 = 0
  @usableFromInline var phase = Phase.value
  @usableFromInline var failure: JSONError?

  /// Creates a scanner at the beginning of a text.
  ///
  /// - Parameter depthLimit: the maximum number of open containers, at most 64.
  @inlinable
  public init(_ bytes: UnsafeRawBufferPointer, depthLimit: Int = 64) {
    self.bytes = bytes
    self.limit = bytes.count
    self.depthLimit = min(max(depthLimit, 0), Self.deepest)
    self.position = 0
  }

  @usableFromInline
  init(_ bytes: UnsafeRawBufferPointer, from start: Int, to end: Int, depthLimit: Int) {
    self.bytes = bytes
    self.limit = end
    self.depthLimit = depthLimit
    self.position = start
  }

  /// Returns a scanner of one value that this one has returned. Its offsets are those of the text.
  public func scanner(of span: JSONSpan) -> JSONScanner {
    let isInside = span.start >= 0 && span.start <= span.end && span.end <= bytes.count
    return JSONScanner(
      bytes, from: isInside ? span.start : 0, to: isInside ? span.end : 0, depthLimit: depthLimit)
  }

  // MARK: Steps

  /// Returns the kind of the next value, or `nil` if no value can begin here.
  @inlinable
  public mutating func peekKind() -> JSONKind? {
    guard phase == .value, failure == nil else { return nil }
    switch peek() {
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "["): return .array
    case UInt8(ascii: "\""): return .string
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number
    case UInt8(ascii: "t"): return .true
    case UInt8(ascii: "f"): return .false
    case UInt8(ascii: "n"): return .null
    default: return nil
    }
  }

  /// Enters the next object; `nextKey()` then returns its members.
  @inlinable
  public mutating func openObject() throws(JSONError) {
    guard phase == .value, peek() == UInt8(ascii: "{") else { throw refusal(.notAnObject) }
    try enter(object: 1)
  }

  /// Enters the next array; `nextElement()` then walks its elements.
  @inlinable
  public mutating func openArray() throws(JSONError) {
    guard phase == .value, peek() == UInt8(ascii: "[") else { throw refusal(.notAnArray) }
    try enter(object: 0)
  }

  /// Returns the key of the innermost object's next member, and moves to its value.
  ///
  /// At the end of the object it leaves the object and returns `nil`.
  @inlinable
  public mutating func nextKey() throws(JSONError) -> JSONSpan? {
    if phase == .value { try pass() }
    guard depth > 0, objects & 1 == 1 else { throw misplaced() }
    var byte = peek()
    if byte == UInt8(ascii: "}") {
      leaveContainer()
      return nil
    }
    if phase == .after {
      guard byte == UInt8(ascii: ",") else { throw unexpected() }
      position &+= 1
      byte = peek()
    }
    guard byte == UInt8(ascii: "\"") else { throw unexpected() }
    let key = try scanString()
    guard peek() == UInt8(ascii: ":") else { throw unexpected() }
    position &+= 1
    phase = .value
    return key
  }

  /// Moves to the innermost array's next element, and returns whether there is one.
  ///
  /// At the end of the array it leaves the array and returns `false`.
  @inlinable
  public mutating func nextElement() throws(JSONError) -> Bool {
    if phase == .value { try pass() }
    guard depth > 0, objects & 1 == 0 else { throw misplaced() }
    let byte = peek()
    if byte == UInt8(ascii: "]") {
      leaveContainer()
      return false
    }
    if phase == .after {
      guard byte == UInt8(ascii: ",") else { throw unexpected() }
      position &+= 1
    }
    phase = .value
    return true
  }

  /// Skips the next value of any kind, and returns its span.
  @inlinable @discardableResult
  public mutating func skip() throws(JSONError) -> JSONSpan {
    guard phase == .value else { throw misplaced() }
    if peek() == UInt8(ascii: "\"") {
      let span = try scanString()
      phase = .after
      return span
    }
    return try scanValue()
  }

  /// Returns the key and the value of the innermost object's next member; `nil` at the end of the object, which it leaves.
  @inlinable
  public mutating func nextMember() throws(JSONError) -> (key: JSONSpan, value: JSONSpan)? {
    guard let key = try nextKey() else { return nil }
    return (key, try skip())
  }

  /// Skips the rest of the text, and checks that nothing follows its value.
  ///
  /// It also leaves open containers, so a reader may finish as soon as it has all that it needs.
  @inlinable
  public mutating func finish() throws(JSONError) {
    if phase == .value { try pass() }
    if depth > 0 { try passContainers(downTo: 0) }
    if let failure { throw failure }
    _ = peek()
    guard position == limit else { throw fail(.trailingBytes, at: position) }
  }

  // MARK: Walking

  /// Returns the next byte after white space, without taking it; 0 at the end.
  ///
  /// A NUL in the text is rejected in the same way.
  @inlinable @inline(__always)
  mutating func peek() -> UInt8 {
    while position < limit {
      let byte = bytes[position]
      if byte > 0x20 { return byte }
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte }
      position &+= 1
    }
    return 0
  }

  @inlinable @inline(__always)
  mutating func enter(object: UInt64) throws(JSONError) {
    guard depth < depthLimit else { throw fail(.tooDeep, at: position) }
    position &+= 1
    depth &+= 1
    objects = objects &<< 1 | object
    phase = .opened
  }

  @inlinable @inline(__always)
  mutating func leaveContainer() {
    position &+= 1
    depth &-= 1
    objects &>>= 1
    phase = .after
  }

  @usableFromInline
  mutating func pass() throws(JSONError) { _ = try skip() }

  /// Scans one value of any kind in the phase `.value`.
  @usableFromInline
  mutating func scanValue() throws(JSONError) -> JSONSpan {
    let byte = peek()
    let start = position
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let outer = depth
      let kind: JSONKind = byte == UInt8(ascii: "{") ? .object : .array
      try enter(object: kind == .object ? 1 : 0)
      try passContainers(downTo: outer)
      return JSONSpan(start: start, end: position, kind: kind)
    default:
      let span = try scanScalar(byte)
      phase = .after
      return span
    }
  }

  /// Skips all bytes to the end of the container at the depth `outer` + 1.
  @usableFromInline
  mutating func passContainers(downTo outer: Int) throws(JSONError) {
    while depth > outer {
      let isObject = objects & 1 == 1
      var byte = peek()
      if byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) {
        leaveContainer()
        continue
      }
      if phase == .after {
        guard byte == UInt8(ascii: ",") else { throw unexpected() }
        position &+= 1
        byte = peek()
      }
      if isObject {
        guard byte == UInt8(ascii: "\"") else { throw unexpected() }
        _ = try scanString()
        guard peek() == UInt8(ascii: ":") else { throw unexpected() }
        position &+= 1
        byte = peek()
      }
      switch byte {
      case UInt8(ascii: "{"): try enter(object: 1)
      case UInt8(ascii: "["): try enter(object: 0)
      default:
        _ = try scanScalar(byte)
        phase = .after
      }
    }
  }

  // MARK: Refusals

  /// Marks the text as invalid. No container is open any more, so each later step ends in `misplaced()`.
  @usableFromInline @inline(never)
  mutating func fail(_ reason: JSONError.Reason, at offset: Int) -> JSONError {
    let error = failure ?? JSONError(reason: offset >= limit ? .truncated : reason, offset: min(offset, limit))
    failure = error
    depth = 0
    objects = 0
    phase = .after
    return error
  }

  @usableFromInline @inline(never)
  mutating func unexpected() -> JSONError { fail(.unexpectedByte, at: position) }

  /// Returns the first error of an invalid text, or else a misplaced call.
  ///
  /// The scanner stays unchanged.
  @usableFromInline @inline(never)
  func misplaced() -> JSONError { failure ?? JSONError(reason: .misplacedCall, offset: position) }

  /// Returns why the requested container cannot be opened here.
  @usableFromInline @inline(never)
  mutating func refusal(_ reason: JSONError.Reason) -> JSONError {
    guard phase == .value else { return misplaced() }
    return peekKind() == nil ? unexpected() : JSONError(reason: reason, offset: position)
  }
}
