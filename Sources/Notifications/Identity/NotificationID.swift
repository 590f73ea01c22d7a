import Cryptography

/// The `apns-id` of a request: a UUID, which identifies a repeated request.
public struct NotificationID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The number of bytes of the binary form.
  public static var byteCount: Int { 16 }
  /// The number of characters of the text.
  public static var textCount: Int { 36 }

  /// The first eight bytes.
  public let high: UInt64
  /// The last eight bytes.
  public let low: UInt64

  /// Creates an id from its two halves.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Reads an id of 8-4-4-4-12 hexadecimal digits in either case; `nil` for other texts.
  public init?(text: UnsafeRawBufferPointer) {
    guard text.count == Self.textCount else { return nil }
    var halves: (UInt64, UInt64) = (0, 0)
    for index in 0..<Self.textCount {
      if Self.isHyphen(index) {
        guard text[index] == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = Hexadecimal.value(text[index]) else { return nil }
      if index < 18 { halves.0 = halves.0 << 4 | UInt64(digit) } else { halves.1 = halves.1 << 4 | UInt64(digit) }
    }
    (high, low) = halves
  }

  /// Reads an id in either case; `nil` for other texts.
  public init?(_ text: String) {
    var text = text
    guard let id = text.withUTF8({ NotificationID(text: UnsafeRawBufferPointer($0)) }) else { return nil }
    self = id
  }

  /// Passes an identifier to `body`: a UUID in lower case, any other text unchanged.
  public static func withCanonical<Result>(_ identifier: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    guard let id = NotificationID(text: identifier) else { return try body(identifier) }
    return try id.withText(body)
  }

  /// Creates an id from sixteen bytes; `nil` for another number of bytes.
  public init?(bytes: UnsafeRawBufferPointer) {
    var reader = ByteReader(bytes)
    guard bytes.count == Self.byteCount, let high = reader.integer(UInt64.self), let low = reader.integer(UInt64.self) else { return nil }
    self.init(high: high, low: low)
  }

  /// Derives the id of a request without one from the position of its record.
  ///
  /// It is the same whenever the record is read. It is a UUID of version 8 (RFC 9562).
  public static func derived(topic: UnsafeRawBufferPointer, source: SourcePosition) -> NotificationID {
    hashed(length: topic.count + 20) { output in
      output.copyMemory(from: topic)
      output.storeBytes(of: UInt32(bitPattern: source.partition).bigEndian, toByteOffset: topic.count, as: UInt32.self)
      output.storeBytes(of: source.offset.bigEndian, toByteOffset: topic.count + 4, as: Int64.self)
      output.storeBytes(of: source.timestamp.bigEndian, toByteOffset: topic.count + 12, as: Int64.self)
    }
  }

  /// Derives a further id from this one, such as for an occurrence of a trigger.
  public func derived(_ discriminator: UnsafeRawBufferPointer) -> NotificationID {
    Self.hashed(length: Self.byteCount + discriminator.count) { output in
      write(bytes: output)
      UnsafeMutableRawBufferPointer(rebasing: output[Self.byteCount...]).copyMemory(from: discriminator)
    }
  }

  private static func hashed(length: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) -> NotificationID {
    withUnsafeTemporaryAllocation(byteCount: length, alignment: 8) { input in
      fill(input)
      return Digest.withSHA256(UnsafeRawBufferPointer(input)) { digest in
        let (high, low) = (
          UInt64(bigEndian: digest.load(as: UInt64.self)), UInt64(bigEndian: digest.load(fromByteOffset: 8, as: UInt64.self))
        )
        return NotificationID(high: high & ~version8.highMask | version8.high, low: low & ~version8.lowMask | version8.low)
      }
    }
  }

  /// The bits of the version and the variant of a UUID of version 8 (RFC 9562), as random ones never have them.
  private static let version8: (high: UInt64, highMask: UInt64, low: UInt64, lowMask: UInt64) = (
    0x8000, 0xF000, 0x8000_0000_0000_0000, 0xC000_0000_0000_0000
  )
  /// The first four bytes of each occurrence's apns-id. Nobody can publish its apns-id beforehand, since no other request may have such a one.
  private static let occurrenceMark: UInt64 = 0x0CC0_0CC0

  /// A derived id as an occurrence has it.
  var ofOccurrence: NotificationID { NotificationID(high: high & 0xFFFF_FFFF | Self.occurrenceMark << 32, low: low) }

  /// Whether it can be an occurrence's.
  var isOfOccurrence: Bool {
    high >> 32 == Self.occurrenceMark && high & Self.version8.highMask == Self.version8.high
      && low & Self.version8.lowMask == Self.version8.low
  }

  /// A fast hash, for tables. It is easy to find two ids with the same one.
  public var hash64: UInt64 { withBytes { StableHash.hash($0) } }

  /// The eight bytes that represent the id in a device's window of recent ids: the first ones of its SHA-256.
  ///
  /// Nobody finds an id that has another's, and so takes the place of a request that somebody else publishes.
  public var windowHash: UInt64 { withBytes { NameHash.hash($0) } }

  /// Appends the sixteen bytes.
  public func append(to buffer: inout ByteBuffer) {
    buffer.append(high)
    buffer.append(low)
  }

  /// Appends the 36 characters.
  public func appendText(to buffer: inout ByteBuffer) {
    buffer.append(count: Self.textCount) { write(text: $0) }
  }

  /// Passes the sixteen bytes to `body`. They are valid during the call.
  public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 8) { output in
      write(bytes: output)
      return try body(UnsafeRawBufferPointer(output))
    }
  }

  /// Passes the 36 characters to `body`. They are valid during the call.
  public func withText<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: Self.textCount, alignment: 8) { output in
      write(text: output)
      return try body(UnsafeRawBufferPointer(rebasing: output[0..<Self.textCount]))
    }
  }

  /// The text, in lower case.
  public var description: String { withText { $0.text } }

  /// Compares the bytes.
  public static func < (left: NotificationID, right: NotificationID) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }

  private func write(bytes output: UnsafeMutableRawBufferPointer) {
    output.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
    output.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
  }

  private func write(text output: UnsafeMutableRawBufferPointer) {
    var digit: UInt64 = 0
    for index in 0..<Self.textCount {
      if Self.isHyphen(index) {
        output[index] = UInt8(ascii: "-")
        continue
      }
      let half = digit < 16 ? high : low
      output[index] = Hexadecimal.digit(UInt8(truncatingIfNeeded: half >> (60 - digit % 16 * 4)) & 0xF)
      digit += 1
    }
  }

  @inline(__always)
  private static func isHyphen(_ index: Int) -> Bool { index == 8 || index == 13 || index == 18 || index == 23 }
}
