import Cryptography

extension EncryptedContent {
  /// The default record size of sealed content.
  public static var defaultRecordSize: Int { 4096 }

  /// Seals content under a key, with a fresh salt.
  ///
  /// - Parameters:
  ///   - keyID: names the key for the receiver, at most `maximumKeyIDBytes`. Everybody can read it.
  ///   - recordSize: the bytes of a record, within `recordSizes`.
  ///   - padding: zeros to add in all, 0 or more, which hide the length. They stand in the first records, beside one
  ///     byte of content each as long as there is content.
  ///   - maximum: the most bytes of the sealed content.
  public static func seal(
    _ plaintext: [UInt8], with key: ContentKey, keyID: [UInt8] = [], recordSize: Int = defaultRecordSize, padding: Int = 0,
    maximum: Int = defaultMaximum
  ) throws(EncryptedContentError) -> [UInt8] {
    try seal(
      plaintext, with: key, keyID: keyID, recordSize: recordSize, padding: padding, maximum: maximum,
      salt: RandomBytes.make(count: saltBytes))
  }

  /// The same with a salt of 16 bytes, which must never repeat with the same key.
  static func seal(
    _ plaintext: [UInt8], with key: ContentKey, keyID: [UInt8], recordSize: Int, padding: Int, maximum: Int, salt: [UInt8]
  ) throws(EncryptedContentError) -> [UInt8] {
    precondition(salt.count == saltBytes, "a salt has 16 bytes")
    guard recordSizes.contains(recordSize) else { throw .recordSize(recordSize) }
    guard keyID.count <= maximumKeyIDBytes else { throw .keyID(bytes: keyID.count) }
    let room = recordSize - recordOverhead
    let content = try contentBytes(plaintext, padding: padding, maximum: maximum)
    let records = content == 0 ? 1 : (content - 1) / room + 1
    guard records <= (maximum - content - fixedHeaderBytes - keyID.count) / recordOverhead else { throw .tooLong(maximum: maximum) }

    let cipher = RecordCipher(key, salt: salt)
    var sealed = salt + (0..<4).map { UInt8(truncatingIfNeeded: recordSize >> (24 - 8 * $0)) } + [UInt8(keyID.count)] + keyID
    sealed.reserveCapacity(sealed.count + content + records * recordOverhead)
    var rest = plaintext[...]
    var paddingLeft = padding
    for place in 0..<records {
      let zeros = min(paddingLeft, rest.isEmpty ? room : room - 1)
      let part = rest.prefix(room - zeros)
      rest = rest.dropFirst(part.count)
      paddingLeft -= zeros
      let record = part + [place == records - 1 ? 2 : 1] + [UInt8](repeating: 0, count: zeros)
      let end = sealed.count
      sealed += [UInt8](repeating: 0, count: record.count + tagBytes)
      record.withUnsafeBytes { record in
        sealed.withUnsafeMutableBytes { cipher.seal(record, at: place, into: UnsafeMutableRawBufferPointer(rebasing: $0[end...])) }
      }
    }
    return sealed
  }

  /// Plaintext and padding together, which must not be too long.
  static func contentBytes(_ plaintext: [UInt8], padding: Int, maximum: Int) throws(EncryptedContentError) -> Int {
    precondition(padding >= 0, "there is no less padding than none")
    guard padding <= maximum, plaintext.count <= maximum - padding else { throw .tooLong(maximum: maximum) }
    return plaintext.count + padding
  }
}
