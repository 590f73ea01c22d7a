import Cryptography
import TestSupport
import Testing

@testable import Extensions

@Suite struct EncryptedContentTests {
  private static let keyBytes: [UInt8] = Array(repeating: 0x4B, count: 16)
  private static let salt: [UInt8] = Array(1...16)
  private static let plaintext = Array("I am the walrus".utf8)
  private let key: ContentKey

  init() throws { key = try #require(ContentKey(Self.keyBytes)) }

  private func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.decode(url: text)) }

  private func open(_ content: [UInt8]) throws(EncryptedContentError) -> [UInt8] { try EncryptedContent(parsing: content).open(with: key) }

  private func seal(_ plaintext: [UInt8] = plaintext, keyID: String = "", recordSize: Int = 4096, padding: Int = 0) throws -> [UInt8] {
    try EncryptedContent.seal(
      plaintext, with: key, keyID: Array(keyID.utf8), recordSize: recordSize, padding: padding, maximum: EncryptedContent.defaultMaximum,
      salt: Self.salt)
  }

  /// Content of records that are sealed as they are given, delimiters and padding included.
  private func content(of records: [[UInt8]], recordSize: Int) -> [UInt8] {
    let cipher = RecordCipher(key, salt: Self.salt)
    var content = Self.salt + [0, 0, UInt8(recordSize >> 8), UInt8(recordSize & 0xFF), 0]
    for (place, record) in records.enumerated() {
      var sealed = [UInt8](repeating: 0, count: record.count + 16)
      sealed.withUnsafeMutableBytes { sealed in record.withUnsafeBytes { cipher.seal($0, at: place, into: sealed) } }
      content += sealed
    }
    return content
  }

  // MARK: The standard's examples

  /// RFC 8188, section 3.1.
  @Test func theExampleOfOneRecordIsOpenedAndMade() throws {
    let content = try bytes("I1BsxtFttlv3u_Oo94xnmwAAEAAA-NAVub2qFgBEuQKRapoZu-IxkIva3MEB1PD-ly8Thjg")
    let key = try #require(ContentKey(bytes("yqdlZ-tYemfogSmv7Ws5PQ")))
    let parsed = try EncryptedContent(parsing: content)
    #expect(parsed.keyID == [] && parsed.recordSize == 4096)
    #expect(try parsed.open(with: key) == Self.plaintext)
    let sealed = try EncryptedContent.seal(
      Self.plaintext, with: key, keyID: [], recordSize: 4096, padding: 0, maximum: 100, salt: Array(content.prefix(16)))
    #expect(sealed == content)
  }

  /// RFC 8188, section 3.2.
  @Test func theExampleOfTwoRecordsWithPaddingIsOpenedAndMade() throws {
    let content = try bytes(
      "uNCkWiNYzKTnBN9ji3-qWAAAABkCYTHOG8chz_gnvgOqdGYovxyjuqRyJFjEDyoF1Fvkj6hQPdPHI51OEUKEpgz3SsLWIqS_uA")
    let key = try #require(ContentKey(bytes("BO3ZVPxUlnLORbVGMpbT1Q")))
    let parsed = try EncryptedContent(parsing: content)
    #expect(parsed.keyID == Array("a1".utf8) && parsed.recordSize == 25)
    #expect(try parsed.open(with: key) == Self.plaintext)
    let sealed = try EncryptedContent.seal(
      Self.plaintext, with: key, keyID: Array("a1".utf8), recordSize: 25, padding: 1, maximum: 100, salt: Array(content.prefix(16)))
    #expect(sealed == content)
  }

  // MARK: There and back

  @Test func contentOfAnyLengthRecordSizeAndPaddingComesBack() throws {
    var random = SeededRandom(seed: 14)
    for _ in 0..<1_000 {
      let plaintext = (0..<Int.random(in: 0...300, using: &random)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      let keyID = (0..<Int.random(in: 0...255, using: &random)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      let keyBytes = (0..<Int.random(in: 16...64, using: &random)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      let (recordSize, padding) = (Int.random(in: 18...400, using: &random), Int.random(in: 0...100, using: &random))
      let key = try #require(ContentKey(keyBytes))
      let sealed = try EncryptedContent.seal(plaintext, with: key, keyID: keyID, recordSize: recordSize, padding: padding)
      let parsed = try EncryptedContent(parsing: sealed)
      #expect(parsed.keyID == keyID && parsed.recordSize == recordSize)
      #expect(try parsed.open(with: key) == plaintext, "\(plaintext.count) bytes, record size \(recordSize), padding \(padding)")
    }
  }

  @Test func paddingHidesTheLengthAndEachSealingIsAnother() throws {
    let lengths = try (0...40).map { try seal([UInt8](repeating: 0x61, count: $0), recordSize: 25, padding: 40 - $0).count }
    #expect(Set(lengths) == [16 + 4 + 1 + 40 + 5 * 17])
    let sealed = try (0..<20).map { _ in try EncryptedContent.seal(Self.plaintext, with: key) }
    #expect(Set(sealed.map { Array($0.prefix(16)) }).count == 20 && Set(sealed.map { Array($0.dropFirst(21)) }).count == 20)
  }

  @Test func paddingStandsInTheFirstRecordsBesideAByteOfContentEach() throws {
    let zeros = { [UInt8](repeating: 0, count: $0) }
    #expect(
      try seal(Array("ab".utf8), recordSize: 25, padding: 10)
        == content(of: [[0x61, 1] + zeros(7), [0x62, 2] + zeros(3)], recordSize: 25))
    #expect(
      try seal(Array("a".utf8), recordSize: 25, padding: 17)
        == content(of: [[0x61, 1] + zeros(7), [1] + zeros(8), [2] + zeros(2)], recordSize: 25))
  }

  @Test func emptyContentHasARecordAndSoHasOnlyPadding() throws {
    #expect(try open(seal([])) == [])
    #expect(try open(seal([], recordSize: 20, padding: 10)) == [])
    #expect(try open(content(of: [[0x61, 1], [1, 0], [2, 0]], recordSize: 18)) == [0x61])
  }

  // MARK: Whatever is not authentic

  /// Three records of 25 bytes, so that each part of the header counts.
  @Test func everyChangedBitOfSeveralRecordsIsNoticed() throws {
    let sealed = try seal(Array("exactly 24 bytes of text".utf8), keyID: "a1", recordSize: 25)
    #expect(sealed.count == 23 + 75)
    let keyID = 21..<23
    for (offset, bit) in sealed.indices.flatMap({ offset in (0..<8).map { (offset, $0) } }) where !keyID.contains(offset) {
      var changed = sealed
      changed[offset] ^= 1 << bit
      #expect(throws: EncryptedContentError.self, "byte \(offset), bit \(bit)") { try open(changed) }
    }
  }

  /// A larger record size says the same of an only record; all else is authenticated.
  @Test func everyChangedBitOfAnOnlyRecordIsNoticedButForThoseOfALargerRecordSize() throws {
    let sealed = try seal()
    for (offset, bit) in sealed.indices.flatMap({ offset in (0..<8).map { (offset, $0) } }) {
      var changed = sealed
      changed[offset] ^= 1 << bit
      let opened = try? open(changed)
      if (16..<20).contains(offset), let size = try? EncryptedContent(parsing: changed).recordSize, size >= sealed.count - 21 {
        #expect(opened == Self.plaintext)
      } else {
        #expect(opened == nil, "byte \(offset), bit \(bit)")
      }
    }
  }

  @Test func everyOtherValueOfAByteOfARecordIsNoticed() throws {
    let sealed = try seal(Array("ab".utf8), recordSize: 18)
    for offset in 21..<sealed.count {
      for change in UInt8(1)...255 {
        var changed = sealed
        changed[offset] ^= change
        #expect(throws: EncryptedContentError.notAuthentic(record: (offset - 21) / 18)) { try open(changed) }
      }
    }
  }

  @Test(arguments: [4096, 18, 25])
  func everyCutContentIsNoticed(_ recordSize: Int) throws {
    let sealed = try seal(recordSize: recordSize, padding: 3)
    for count in sealed.indices {
      #expect(throws: EncryptedContentError.self, "\(count) of \(sealed.count) bytes") { try open(Array(sealed.prefix(count))) }
    }
    // After whole records, the rest missing: each is authentic, but none is the last.
    for count in stride(from: 21 + recordSize, to: sealed.count, by: recordSize) {
      #expect(throws: EncryptedContentError.lastRecordMissing) { try open(Array(sealed.prefix(count))) }
    }
  }

  @Test(arguments: [4096, 18, 25])
  func bytesBehindTheLastRecordAreNoticed(_ recordSize: Int) throws {
    let sealed = try seal(recordSize: recordSize, padding: 1)
    for count in 1...60 {
      #expect(throws: EncryptedContentError.self, "\(count) more") { try open(sealed + [UInt8](repeating: 0, count: count)) }
    }
  }

  @Test func recordsInAnotherOrderOrMissingOrTwiceAreNoticed() throws {
    let sealed = try seal(Array("three records of 8 bytes".utf8), recordSize: 25)
    let records = (0..<3).map { Array(sealed[21 + 25 * $0..<21 + 25 * ($0 + 1)]) }
    let other = try EncryptedContent.seal(Array("three records of 8 bytes".utf8), with: key, recordSize: 25)
    let otherRecords = (0..<3).map { Array(other[21 + 25 * $0..<21 + 25 * ($0 + 1)]) }
    for wrong in [
      [records[1], records[0], records[2]], [records[0], records[2]], [records[1], records[2]], [records[0], records[0], records[2]],
      [records[0], otherRecords[1], records[2]], [records[0], records[1], otherRecords[2]],
    ] {
      #expect {
        try open(Array(sealed.prefix(21)) + wrong.joined())
      } throws: { error in
        (0..<3).contains { error as? EncryptedContentError == .notAuthentic(record: $0) }
      }
    }
    #expect(try open(Array(sealed.prefix(21)) + records.joined()) == Array("three records of 8 bytes".utf8))
  }

  @Test func anotherKeyOpensNothing() throws {
    let sealed = try EncryptedContent(parsing: seal())
    for other in [[UInt8](repeating: 0x4C, count: 16), Self.keyBytes + [0], [UInt8](repeating: 0x4B, count: 17)] {
      let other = try #require(ContentKey(other))
      #expect(throws: EncryptedContentError.notAuthentic(record: 0)) { try sealed.open(with: other) }
    }
  }

  // MARK: Rules beside authenticity

  @Test func delimitersStandWhereTheRuleSays() throws {
    #expect(try open(content(of: [[0x61, 1], [0x62, 2]], recordSize: 18)) == Array("ab".utf8))
    #expect(throws: EncryptedContentError.lastRecordMissing) { try open(content(of: [[0x61, 1]], recordSize: 18)) }
    #expect(throws: EncryptedContentError.lastRecordMissing) { try open(content(of: [[0x61, 1], [0x62, 1]], recordSize: 18)) }
    #expect(throws: EncryptedContentError.recordAfterLast(record: 0)) { try open(content(of: [[0x61, 2], [0x62, 2]], recordSize: 18)) }
    #expect(throws: EncryptedContentError.padding(record: 0)) { try open(content(of: [[0, 0], [0x62, 2]], recordSize: 18)) }
    #expect(throws: EncryptedContentError.padding(record: 1)) { try open(content(of: [[0x61, 1], [0, 0]], recordSize: 18)) }
    #expect(throws: EncryptedContentError.padding(record: 1)) { try open(content(of: [[0x61, 1], [0x62, 3]], recordSize: 18)) }
    #expect(throws: EncryptedContentError.padding(record: 0)) { try open(content(of: [[0x61, 0x61], [0x62, 2]], recordSize: 18)) }
    #expect(throws: EncryptedContentError.incompleteRecord) { try open(content(of: [[0x61, 1], []], recordSize: 18)) }
  }

  @Test(arguments: [0, 1, 16, 17])
  func recordSizesWithoutRoomForContentAreRefused(_ recordSize: Int) throws {
    #expect(throws: EncryptedContentError.recordSize(recordSize)) { try open(content(of: [[2]], recordSize: recordSize)) }
    #expect(throws: EncryptedContentError.recordSize(recordSize)) { try seal(recordSize: recordSize) }
  }

  @Test func theLargestRecordSizeIsOneToo() throws {
    let largest = Int(UInt32.max)
    #expect(try EncryptedContent(parsing: seal(recordSize: largest)).recordSize == largest)
    #expect(try open(seal(recordSize: largest)) == Self.plaintext)
    #expect(throws: EncryptedContentError.recordSize(largest + 1)) { try seal(recordSize: largest + 1) }
  }

  @Test func headersThatEndTooEarlyAreRefused() throws {
    let sealed = try seal(keyID: "abc")
    for count in 0..<24 { #expect(throws: EncryptedContentError.incompleteHeader) { try open(Array(sealed.prefix(count))) } }
    #expect(throws: EncryptedContentError.noRecords) { try open(Array(sealed.prefix(24))) }
    for count in 25..<41 { #expect(throws: EncryptedContentError.incompleteRecord) { try open(Array(sealed.prefix(count))) } }
    #expect(throws: EncryptedContentError.notAuthentic(record: 0)) { try open(Array(sealed.prefix(41))) }
  }

  @Test func contentIsReadAndMadeUpToTheMaximum() throws {
    let longest = try seal([UInt8](repeating: 0x61, count: 1000), keyID: "abc", recordSize: 100, padding: 5)
    #expect(longest.count == 21 + 3 + 1005 + 13 * 17)
    #expect(try EncryptedContent(parsing: longest, maximum: longest.count).open(with: key).count == 1000)
    #expect(throws: EncryptedContentError.tooLong(maximum: longest.count - 1)) {
      try EncryptedContent(parsing: longest, maximum: longest.count - 1)
    }
    func sealed(_ maximum: Int, padding: Int = 5) throws -> [UInt8] {
      try EncryptedContent.seal(
        [UInt8](repeating: 0x61, count: 1000), with: key, keyID: Array("abc".utf8), recordSize: 100, padding: padding, maximum: maximum)
    }
    #expect(try sealed(longest.count).count == longest.count)
    for maximum in [longest.count - 1, 1005, 1004, 999, 0, -1] {
      #expect(throws: EncryptedContentError.tooLong(maximum: maximum)) { try sealed(maximum) }
    }
    #expect(throws: EncryptedContentError.tooLong(maximum: 16_384)) { try sealed(16_384, padding: .max) }
  }

  @Test func keysHave16To64Bytes() {
    for count in 0...80 { #expect((ContentKey([UInt8](repeating: 1, count: count)) != nil) == (16...64).contains(count)) }
  }

  @Test func noTextOrDumpShowsAKey() {
    for value in [key, [key], Optional(key) as Any, ["a": key]] as [Any] {
      var dumped = ""
      dump(value, to: &dumped)
      for text in [dumped, String(describing: value), String(reflecting: value)] {
        #expect(text.contains("a key of 16 bytes") && !text.contains("75") && !text.contains("K"), "\(text)")
      }
    }
  }

  // MARK: Hostile bytes

  @Test func nothingOpensButWhatWasSealed() throws {
    let texts = ["", "a", "I am the walrus", "Grüße 🔔, in several records"].map { Array($0.utf8) }
    let corpus = try texts.flatMap { text in
      try [18, 25, 4096].flatMap { size in try [0, 9].map { try seal(text, keyID: "2026-11", recordSize: size, padding: $0) } }
    }
    let failures = Fuzz("encrypted content", corpus: corpus, tokens: ["\0\0\u{10}\0"]).run { bytes, _ in
      guard let opened = try? open(Array(bytes)) else { return nil }
      return texts.contains(opened) ? nil : "\(opened) was never sealed"
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
