import Cryptography
import Testing

private func repeated(_ byte: UInt8, _ count: Int) -> [UInt8] { [UInt8](repeating: byte, count: count) }

@Suite struct HMACKeyTests {
  /// RFC 4231, section 4: test cases 1 to 4, 6 and 7.
  private static let cases: [(key: [UInt8], message: [UInt8], code: String)] = [
    (repeated(0x0B, 20), Array("Hi There".utf8), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    (
      Array("Jefe".utf8), Array("what do ya want for nothing?".utf8), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    ),
    (repeated(0xAA, 20), repeated(0xDD, 50), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    (Array(1...25), repeated(0xCD, 50), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    (
      repeated(0xAA, 131), Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    ),
    (
      repeated(0xAA, 131),
      Array(
        "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm."
          .utf8), "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"
    ),
  ]

  @Test(arguments: cases.indices)
  func codesAreThoseOfTheStandardHoweverOftenTheKeyIsUsed(_ index: Int) {
    let (key, message, code) = Self.cases[index]
    let prepared = HMACKey(key)
    for _ in 0..<3 {
      #expect(message.withUnsafeBytes { prepared.authenticationCode($0).hex } == code)
      _ = repeated(7, 200).withUnsafeBytes { prepared.authenticationCode($0) }
    }
  }

  /// RFC 4231, test case 5: a code cut to its first half.
  @Test func aCodeCutToItsFirstHalfIsEnoughAndLessIsNot() {
    let key = HMACKey(repeated(0x0C, 20))
    let message = Array("Test With Truncation".utf8)
    message.withUnsafeBytes { message in
      let code = key.authenticationCode(message)
      #expect(Array(code.prefix(16)).hex == "a3b6167473100ee06e0c796c2955552b")
      for count in 0...32 {
        #expect(code.prefix(count).withUnsafeBytes { key.verify($0, of: message) } == (count >= 16))
      }
      #expect(!(code + [0]).withUnsafeBytes { key.verify($0, of: message) })
    }
  }

  @Test func everyChangedBitOfCodeOrMessageIsNoticed() {
    let key = HMACKey(Array(0..<32))
    let message = Array("from the 27th on: 🔔".utf8)
    let code = message.withUnsafeBytes { key.authenticationCode($0) }
    for (offset, bit) in code.indices.flatMap({ offset in (0..<8).map { (offset, UInt8(1) << $0) } }) {
      var forged = code
      forged[offset] ^= bit
      #expect(!forged.withUnsafeBytes { forged in message.withUnsafeBytes { key.verify(forged, of: $0) } })
    }
    for (offset, bit) in message.indices.flatMap({ offset in (0..<8).map { (offset, UInt8(1) << $0) } }) {
      var forged = message
      forged[offset] ^= bit
      #expect(!code.withUnsafeBytes { code in forged.withUnsafeBytes { key.verify(code, of: $0) } })
    }
    let other = HMACKey(Array(1..<33))
    #expect(!code.withUnsafeBytes { code in message.withUnsafeBytes { other.verify(code, of: $0) } })
  }

  @Test func theEmptyMessageHasACodeToo() {
    let code = HMACKey([]).authenticationCode(UnsafeRawBufferPointer(start: nil, count: 0))
    #expect(code.hex == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
  }
}
