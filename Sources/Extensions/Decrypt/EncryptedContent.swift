/// Content in the coding `aes128gcm` of RFC 8188, its header read: 16 bytes of salt, the record size in four, a key id with its length
/// in one, and records that are encrypted and authenticated one by one.
///
/// Each record ends in a delimiter, 2 in the last one and 1 in the others, and zeros as padding; then its tag of 16 bytes.
///
/// The header itself is not authenticated. With another salt no record opens. With another record size only a single record opens that is
/// not longer, with the same result. The key id only serves to find the key.
public struct EncryptedContent: Sendable {
  /// The longest content by default, in bytes: more than fits into a payload's field.
  public static var defaultMaximum: Int { 16_384 }
  /// The allowed record sizes: at least a byte of content with the delimiter and the tag.
  public static var recordSizes: ClosedRange<Int> { 18...Int(UInt32.max) }
  /// The longest key id, in bytes.
  public static var maximumKeyIDBytes: Int { 255 }

  static let saltBytes = 16
  static let tagBytes = 16
  /// The bytes of a delimiter and a tag: the least bytes of a record, and its overhead.
  static let recordOverhead = 17
  static let fixedHeaderBytes = saltBytes + 4 + 1

  /// The bytes of a record; the last one may have fewer.
  public let recordSize: Int
  /// The name of the key; empty if both sides know it anyway. In RFC 8291 it is the sender's public key.
  public let keyID: [UInt8]

  private let bytes: [UInt8]
  /// The beginning of the first record.
  private let start: Int

  /// Reads the header, and checks everything that needs no key.
  ///
  /// - Parameter maximum: the most bytes of the content.
  public init(parsing bytes: [UInt8], maximum: Int = defaultMaximum) throws(EncryptedContentError) {
    guard bytes.count <= maximum else { throw .tooLong(maximum: maximum) }
    guard bytes.count >= Self.fixedHeaderBytes else { throw .incompleteHeader }
    start = Self.fixedHeaderBytes + Int(bytes[Self.fixedHeaderBytes - 1])
    guard bytes.count >= start else { throw .incompleteHeader }
    recordSize = bytes[Self.saltBytes..<Self.saltBytes + 4].reduce(0) { $0 << 8 | Int($1) }
    guard Self.recordSizes.contains(recordSize) else { throw .recordSize(recordSize) }
    guard bytes.count > start else { throw .noRecords }
    let last = (bytes.count - start - 1) % recordSize + 1
    guard last >= Self.recordOverhead else { throw .incompleteRecord }
    keyID = Array(bytes[Self.fixedHeaderBytes..<start])
    self.bytes = bytes
  }

  /// The plaintext, if every record is authentic, complete and in its place; otherwise an error.
  ///
  /// A wrong key looks like changed bytes: both are `notAuthentic`.
  public func open(with key: ContentKey) throws(EncryptedContentError) -> [UInt8] {
    let cipher = RecordCipher(key, salt: Array(bytes[..<Self.saltBytes]))
    var plaintext = [UInt8](repeating: 0, count: bytes.count - start)
    var opened = 0
    for (place, offset) in stride(from: start, to: bytes.count, by: recordSize).enumerated() {
      let record = offset..<min(offset + recordSize, bytes.count)
      let room = opened..<opened + record.count - Self.tagBytes
      let isAuthentic = bytes.withUnsafeBytes { bytes in
        plaintext.withUnsafeMutableBytes { plaintext in
          cipher.open(
            UnsafeRawBufferPointer(rebasing: bytes[record]), at: place, into: UnsafeMutableRawBufferPointer(rebasing: plaintext[room]))
        }
      }
      guard isAuthentic else { throw .notAuthentic(record: place) }
      opened = try Self.delimiter(of: plaintext[room], isLast: record.upperBound == bytes.count, record: place)
    }
    plaintext.removeSubrange(opened...)
    return plaintext
  }

  /// The place of the delimiter in an opened record, which must be the right one.
  private static func delimiter(of room: ArraySlice<UInt8>, isLast: Bool, record: Int) throws(EncryptedContentError) -> Int {
    guard let index = room.lastIndex(where: { $0 != 0 }) else { throw .padding(record: record) }
    switch (room[index], isLast) {
    case (1, false), (2, true): return index
    case (1, true): throw .lastRecordMissing
    case (2, false): throw .recordAfterLast(record: record)
    default: throw .padding(record: record)
    }
  }
}

/// Why content cannot be opened, and what to do. No text contains a part of the key or the plaintext.
public struct EncryptedContentError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The error, and what to do.
  public let description: String

  private init(_ description: String) { self.description = description }

  /// It has too many bytes.
  static func tooLong(maximum: Int) -> Self { Self("the encrypted content is too long; at most \(maximum) bytes are allowed") }
  /// It ends within its header.
  static let incompleteHeader = Self(
    "the encrypted content ends within its header; it begins with 16 bytes of salt, 4 of record size, and a key id behind its length")
  /// RFC 8188 does not allow the record size.
  static func recordSize(_ size: Int) -> Self { Self("the record size \(size) is not allowed; it is from 18 to 4294967295 bytes") }
  /// Nothing follows the header; even empty content has a record.
  static let noRecords = Self("no record follows the header of the encrypted content; send all of it")
  /// The last record is too short for a delimiter and a tag.
  static let incompleteRecord = Self("the last record of the encrypted content has fewer than 17 bytes; send all of it")
  /// A record, counted from 0, was not sealed with this key, in this place, or as it is.
  static func notAuthentic(record: Int) -> Self {
    Self("record \(record) of the encrypted content is not authentic; it was sealed with another key, or has been changed or cut")
  }
  /// A record, counted from 0, is authentic, but has no delimiter or none of the two.
  static func padding(record: Int) -> Self {
    Self("record \(record) of the encrypted content has no delimiter before its padding; it is 2 in the last record, else 1")
  }
  /// All records are authentic, but the last one of all is not among them.
  static let lastRecordMissing = Self("the last record of the encrypted content is missing; send all of it")
  /// A record, counted from 0, says that it is the last, but something follows it.
  static func recordAfterLast(record: Int) -> Self {
    Self("something follows record \(record) of the encrypted content, which is the last by its delimiter")
  }
  /// What should be a public key of P-256 is none: the key id of content by RFC 8291.
  static let publicKey = Self("the public key is no uncompressed point of the curve P-256; by RFC 8291 the sender's is the key id")
}
