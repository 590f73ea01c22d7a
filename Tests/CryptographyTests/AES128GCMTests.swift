import Cryptography
import Testing

private func bytes(_ text: String) throws -> [UInt8] { try #require([UInt8](hex: text)) }

@Suite struct AES128GCMTests {
  private struct Case {
    let key, nonce, plaintext, additional, ciphertext, tag: String
  }

  /// "The Galois/Counter Mode of Operation" (McGrew, Viega), appendix B: test cases 1 to 4, those of AES-128 with a nonce of 12 bytes.
  private static let cases = [
    Case(
      key: "00000000000000000000000000000000", nonce: "000000000000000000000000", plaintext: "", additional: "", ciphertext: "",
      tag: "58e2fccefa7e3061367f1d57a4e7455a"),
    Case(
      key: "00000000000000000000000000000000", nonce: "000000000000000000000000", plaintext: "00000000000000000000000000000000",
      additional: "", ciphertext: "0388dace60b6a392f328c2b971b2fe78", tag: "ab6e47d42cec13bdf53a67b21257bddf"),
    Case(
      key: "feffe9928665731c6d6a8f9467308308", nonce: "cafebabefacedbaddecaf888",
      plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
        + "b16aedf5aa0de657ba637b391aafd255",
      additional: "",
      ciphertext: "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05"
        + "1ba30b396a0aac973d58e091473f5985",
      tag: "4d5c2af327cd64a62cf35abd2ba6fab4"),
    Case(
      key: "feffe9928665731c6d6a8f9467308308", nonce: "cafebabefacedbaddecaf888",
      plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
        + "b16aedf5aa0de657ba637b39",
      additional: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
      ciphertext: "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa05"
        + "1ba30b396a0aac973d58e091",
      tag: "5bc94fbc3221a5db94fae95ae7121a47"),
  ]

  @Test(arguments: cases.indices)
  func sealedMessagesAreThoseOfTheStandardHoweverOftenTheKeyIsUsed(_ index: Int) throws {
    let vector = Self.cases[index]
    let key = try bytes(vector.key).withUnsafeBytes { AES128GCM($0) }
    let (nonce, plaintext, additional) = (try bytes(vector.nonce), try bytes(vector.plaintext), try bytes(vector.additional))
    let sealed = try bytes(vector.ciphertext) + bytes(vector.tag)
    for _ in 0..<3 {
      #expect(key.seal(plaintext, nonce: nonce, authenticating: additional) == sealed)
      #expect(key.open(sealed, nonce: nonce, authenticating: additional) == plaintext)
      #expect(key.open(sealed, nonce: nonce, authenticating: additional + [0]) == nil)
    }
  }

  @Test func everyChangedBitOfMessageNonceAndAdditionalBytesIsNoticed() {
    let key = (0..<16).map { UInt8($0) }.withUnsafeBytes { AES128GCM($0) }
    let (nonce, additional): ([UInt8], [UInt8]) = (Array(1...12), Array("header".utf8))
    let sealed = key.seal(Array("from the 27th on: 🔔".utf8), nonce: nonce, authenticating: additional)
    func changed(_ bytes: [UInt8]) -> [[UInt8]] {
      bytes.indices.flatMap { offset in
        (0..<8).map { bit in
          var bytes = bytes
          bytes[offset] ^= 1 << bit
          return bytes
        }
      }
    }
    for sealed in changed(sealed) { #expect(key.open(sealed, nonce: nonce, authenticating: additional) == nil) }
    for nonce in changed(nonce) { #expect(key.open(sealed, nonce: nonce, authenticating: additional) == nil) }
    for additional in changed(additional) { #expect(key.open(sealed, nonce: nonce, authenticating: additional) == nil) }
    for count in sealed.indices { #expect(key.open(Array(sealed.prefix(count)), nonce: nonce, authenticating: additional) == nil) }
    #expect(key.open(sealed, nonce: nonce, authenticating: additional) == Array("from the 27th on: 🔔".utf8))
  }

  @Test func nothingOfAChangedMessageIsLeftInTheMemory() {
    let key = [UInt8](repeating: 7, count: 16).withUnsafeBytes { AES128GCM($0) }
    let nonce = [UInt8](repeating: 1, count: 12)
    var sealed = key.seal([UInt8](repeating: 0x61, count: 100), nonce: nonce)
    sealed[99] ^= 1
    var plaintext = [UInt8](repeating: 0x62, count: 100)
    let isAuthentic = plaintext.withUnsafeMutableBytes { plaintext in
      sealed.withUnsafeBytes { sealed in nonce.withUnsafeBytes { key.open(sealed, nonce: $0, into: plaintext) } }
    }
    #expect(!isAuthentic && plaintext == [UInt8](repeating: 0, count: 100))
  }
}
