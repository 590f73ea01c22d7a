internal import Glibc

/// The values of spans.
///
/// Each reader returns `nil` for a span of another kind. The scanner has checked the UTF-8 of a string before it returns its span.
extension JSONScanner {
  /// Returns the span's bytes in the text, valid as long as the text is.
  @inlinable
  public func source(_ span: JSONSpan) -> UnsafeRawBufferPointer {
    guard span.start >= 0, span.start <= span.end, span.end <= bytes.count else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(rebasing: bytes[span.start..<span.end])
  }

  /// Returns the UTF-8 of a string without a copy; `nil` if it has escapes.
  ///
  /// `text(_:)` resolves escapes.
  @inlinable
  public func unescapedBytes(_ span: JSONSpan) -> UnsafeRawBufferPointer? {
    guard span.kind == .string, !span.escaped else { return nil }
    return content(span)
  }

  /// Returns the characters of a string, without escapes.
  public func text(_ span: JSONSpan) -> String? {
    guard span.kind == .string else { return nil }
    let content = content(span)
    guard span.escaped else { return String(decoding: content, as: UTF8.self) }
    return String(unsafeUninitializedCapacity: content.count) { StringBytes.unescape(content, into: $0) }
  }

  /// Whether a string, such as a key, has exactly the characters of `name`.
  ///
  /// It is cheap without escapes.
  @inlinable @inline(__always)
  public func matches(_ span: JSONSpan, _ name: StaticString) -> Bool {
    let length = name.utf8CodeUnitCount
    if !span.escaped {
      guard span.end &- span.start &- 2 == length, span.kind == .string else { return false }
      // The first letters of most names differ. A call would then cost more than the comparison.
      guard length > 0, span.start >= 0, span.end <= bytes.count else { return length == 0 }
      guard bytes[span.start &+ 1] == name.utf8Start.pointee else { return false }
    }
    return hasCharacters(span, UnsafeRawBufferPointer(start: name.utf8Start, count: length))
  }

  /// Whether a string, such as a key, has exactly the characters of a text.
  public func matches(_ span: JSONSpan, text name: String) -> Bool {
    guard span.escaped || span.count &- 2 == name.utf8.count else { return false }
    return name.utf8Span.span.bytes.withUnsafeBytes { hasCharacters(span, $0) }
  }

  @usableFromInline
  func hasCharacters(_ span: JSONSpan, _ name: UnsafeRawBufferPointer) -> Bool {
    guard span.kind == .string else { return false }
    let content = content(span)
    if span.escaped {
      return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(content.count, 1)) { buffer in
        let count = StringBytes.unescape(content, into: buffer)
        return Self.isEqual(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[0..<count]), name)
      }
    }
    return Self.isEqual(content, name)
  }

  private static func isEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    guard let leftStart = left.baseAddress, let rightStart = right.baseAddress else { return true }
    return memcmp(leftStart, rightStart, left.count) == 0
  }

  /// Returns a number as an exact integer; `nil` for a fraction or beyond the range.
  ///
  /// `1.0` and `1e3` are integers. With a point or an exponent a number may have 15 digits, and be at most 2^53.
  public func integer(_ span: JSONSpan) -> Int64? {
    guard span.kind == .number else { return nil }
    return DecimalText(source(span)).integer
  }

  /// Returns a number as the nearest double; `nil` if it is too large.
  public func double(_ span: JSONSpan) -> Double? {
    guard span.kind == .number else { return nil }
    guard let value = Double(String(decoding: source(span), as: UTF8.self)), value.isFinite else { return nil }
    return value
  }

  /// Returns a `true` or `false`.
  @inlinable
  public func bool(_ span: JSONSpan) -> Bool? {
    switch span.kind {
    case .true: true
    case .false: false
    default: nil
    }
  }

  /// Returns the bytes between a string's quotes.
  @usableFromInline
  func content(_ span: JSONSpan) -> UnsafeRawBufferPointer {
    guard span.start >= 0, span.end <= bytes.count, span.end &- span.start >= 2 else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(rebasing: bytes[(span.start &+ 1)..<(span.end &- 1)])
  }
}

extension StringBytes {
  /// Resolves the escapes of a string. Returns the number of bytes written, at most that of the content.
  static func unescape(_ content: UnsafeRawBufferPointer, into output: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var written = 0
    var cursor = 0
    func put(_ byte: UInt8) {
      guard written < output.count else { return }
      output[written] = byte
      written &+= 1
    }
    while cursor < content.count {
      let byte = content[cursor]
      guard byte == UInt8(ascii: "\\"), cursor &+ 1 < content.count else {
        put(byte)
        cursor &+= 1
        continue
      }
      let letter = content[cursor &+ 1]
      cursor &+= 2
      switch letter {
      case UInt8(ascii: "b"): put(0x08)
      case UInt8(ascii: "f"): put(0x0C)
      case UInt8(ascii: "n"): put(0x0A)
      case UInt8(ascii: "r"): put(0x0D)
      case UInt8(ascii: "t"): put(0x09)
      case UInt8(ascii: "u"):
        var value = UInt32(unit(content, at: cursor, limit: content.count) ?? 0xFFFD)
        cursor &+= 4
        if value & 0xFC00 == 0xD800, let low = lowSurrogate(content, at: cursor, limit: content.count) {
          value = 0x10000 &+ (value & 0x3FF) &<< 10 &+ UInt32(low & 0x3FF)
          cursor &+= 6
        }
        for unit in UTF8.encode(Unicode.Scalar(value) ?? "\u{FFFD}") ?? UTF8.encodedReplacementCharacter { put(unit) }
      default: put(letter)
      }
    }
    return written
  }
}
