/// Reads a JSON text once from front to back, checks all of it by RFC 8259, and hands out where its values stand.
///
/// The caller drives it: open a container, ask for its keys or elements, take or skip each value, and at the end call `finish()`.
/// A value that is not taken is skipped by the next step, still checked. Only after `finish()` has returned is the whole text known
/// to be valid.
///
/// The scanner borrows the bytes: it must not outlive the call that owns them. It is a value, so a copy is a place to come back to.
/// After a text has been found invalid every further step throws the same error; a step that only met another kind of value
/// (`notAnObject`, `notAnArray`) leaves the scanner where it was, so that the caller can take the value otherwise. Nothing that a text
/// contains traps.
///
/// Beyond the grammar it refuses: bytes that are not UTF-8, escaped surrogates without their other half, a byte order mark,
/// and deeper nesting than its limit. It keeps numbers of any size, and duplicate keys, which it hands out as they come.
public struct JSONScanner {
  /// What may come at `position`.
  @usableFromInline
  enum Phase: UInt8 {
    /// A value: at the beginning, after a key, at an element.
    case value
    /// The first key or element of the container just opened, or its end.
    case opened
    /// A comma or the container's end; at the top, the text's end.
    case after
  }

  /// The deepest limit there is: one bit of `objects` for each level.
  @usableFromInline static var deepest: Int { 64 }

  @usableFromInline let bytes: UnsafeRawBufferPointer
  @usableFromInline let limit: Int
  @usableFromInline let depthLimit: Int
  @usableFromInline var position: Int
  @usableFromInline var depth = 0
  /// The kinds of the open containers, the innermost in the lowest bit: 1 is an object.
  @usableFromInline var objects: UInt64 = 0
  @usableFromInline var phase = Phase.value
  @usableFromInline var failure: JSONError?

  /// A scanner at the beginning of a text.
  ///
  /// - Parameter depthLimit: how many containers may be open at once, 64 at most.
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

  /// A scanner over one value that this one has handed out, with offsets of the same text.
  public func scanner(of span: JSONSpan) -> JSONScanner {
    let isInside = span.start >= 0 && span.start <= span.end && span.end <= bytes.count
    return JSONScanner(
      bytes, from: isInside ? span.start : 0, to: isInside ? span.end : 0, depthLimit: depthLimit)
  }

  // MARK: Steps

  /// The kind of the value that comes next, or `nil` where no value can begin.
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

  /// Enters the object that comes next; `nextKey()` then gives its members.
  @inlinable
  public mutating func openObject() throws(JSONError) {
    guard phase == .value, peek() == UInt8(ascii: "{") else { throw refusal(.notAnObject) }
    try enter(object: 1)
  }

  /// Enters the array that comes next; `nextElement()` then walks its elements.
  @inlinable
  public mutating func openArray() throws(JSONError) {
    guard phase == .value, peek() == UInt8(ascii: "[") else { throw refusal(.notAnArray) }
    try enter(object: 0)
  }

  /// The key of the innermost object's next member, with the scanner at its value; `nil` when the object has ended and was left.
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

  /// Whether the innermost array has a further element, with the scanner at it; `false` when the array has ended and was left.
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

  /// Passes the value that comes next, of any kind, and says where it stands.
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

  /// Passes the rest of the innermost open container and leaves it.
  public mutating func leave() throws(JSONError) {
    if phase == .value { try pass() }
    guard depth > 0 else { throw misplaced() }
    try passContainers(downTo: depth &- 1)
  }

  /// Passes whatever is left, and checks that nothing follows the text's one value.
  ///
  /// With containers still open it leaves them, so a reader that has what it wants just finishes.
  @inlinable
  public mutating func finish() throws(JSONError) {
    if phase == .value { try pass() }
    if depth > 0 { try passContainers(downTo: 0) }
    if let failure { throw failure }
    _ = peek()
    guard position == limit else { throw fail(.trailingBytes, at: position) }
  }

  // MARK: Walking

  /// The next byte that is not white space, without taking it; 0 at the end, where NUL would be refused alike.
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

  /// One value of any kind; the phase is `.value`.
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

  /// Passes everything up to the end of the container that made the depth `outer` + 1.
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

  /// Remembers that the text is invalid: no container is open any more, so every later step ends in `misplaced()`.
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

  /// The first error of an invalid text, or that the call has no place here. The scanner stays as it is.
  @usableFromInline @inline(never)
  func misplaced() -> JSONError { failure ?? JSONError(reason: .misplacedCall, offset: position) }

  /// Why the container that was asked for cannot be opened here.
  @usableFromInline @inline(never)
  mutating func refusal(_ reason: JSONError.Reason) -> JSONError {
    guard phase == .value else { return misplaced() }
    return peekKind() == nil ? unexpected() : JSONError(reason: reason, offset: position)
  }
}
