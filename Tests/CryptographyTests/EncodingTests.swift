import Cryptography
import Testing

@Suite struct Base64Tests {
  /// RFC 4648, section 10.
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
  ])
  func encodingIsThatOfTheStandard(_ plain: String, _ text: String) {
    let bytes = Array(plain.utf8)
    let unpadded = String(text.prefix { $0 != "=" })
    #expect(bytes.withUnsafeBytes { Base64.encode($0) } == text)
    #expect(bytes.withUnsafeBytes { Base64.encode(url: $0) } == unpadded)
    #expect(Base64.decode(text) == bytes)
    #expect(Base64.decode(url: unpadded) == bytes)
  }

  @Test func theAlphabetsDifferInTheirLastTwoLetters() {
    let bytes: [UInt8] = [0xFB, 0xEF, 0xFF]
    #expect(bytes.withUnsafeBytes { Base64.encode($0) } == "++//")
    #expect(bytes.withUnsafeBytes { Base64.encode(url: $0) } == "--__")
    #expect(Base64.decode("++//") == bytes && Base64.decode(url: "--__") == bytes)
    #expect(Base64.decode("--__") == nil && Base64.decode(url: "++//") == nil)
  }

  @Test(arguments: [
    "Zg", "Zg=", "Zg===", "Zm8", "Zm9vYg", "Z", "Z===", "=", "==", "===", "====", "Zm9v====", "=Zg=", "Zg=v", "Z=g=", "Zm9v\n", "Zm 9v",
    " Zm9v",
    "Zm9é", "Zh==", "Zm9=", "Zm9v\0", "Zm9vZh==", "Zm9vZg==Zm9v", "Zm8=\u{301}",
  ])
  func whatIsNotTheOneSpellingIsRefused(_ text: String) {
    #expect(Base64.decode(text) == nil)
  }

  @Test(arguments: ["Zg==", "Zm8=", "Z", "A", "AAAAA", "Zm9vY", "Zh", "Zm9", "Zm9v\n", "Zm 9v", "Zm9vé", "Zm9v."])
  func whatIsNotTheOneSpellingForURLsIsRefused(_ text: String) {
    #expect(Base64.decode(url: text) == nil)
  }

  @Test func bytesOfEveryLengthComeBackAndNoOtherTextGivesThem() {
    for count in 0..<100 {
      let bytes = RandomBytes.make(count: count)
      let text = bytes.withUnsafeBytes { Base64.encode($0) }
      let url = bytes.withUnsafeBytes { Base64.encode(url: $0) }
      #expect(Base64.decode(text) == bytes && Base64.decode(url: url) == bytes)
      // Another last letter is either other bytes or no valid text: one spelling for each.
      for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" where letter != url.last && count > 0 {
        #expect(Base64.decode(url: String(url.dropLast()) + String(letter)) != bytes)
      }
    }
  }
}
