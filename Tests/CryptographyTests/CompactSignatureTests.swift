import Cryptography
import Testing

private let key: [UInt8] = Array(0..<32)
private let payload = #"{"sub":"0123","app":"com.example.shop","iat":1700000000,"exp":1800000000}"#
/// Made by another implementation (Python's hmac and base64) from the same key and payload.
private let credential =
  "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIwMTIzIiwiYXBwIjoiY29tLmV4YW1wbGUuc2hvcCIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxODAwMDAwMDAwfQ"
  + ".-YFfhvji8CfwvejMtNgHha8DoZryKEzC70_ZgyVuLLc"

private func url(_ text: String) -> String { Array(text.utf8).withUnsafeBytes { Base64.encode(url: $0) } }
private func verify(_ text: String, with bytes: [UInt8] = key) -> [UInt8]? {
  CompactSignature.verify(text, with: [SignatureKey(secret: KeyRing.Key(bytes))]) { _, _ in true }?.payload
}

/// A text whose code is right for whatever its header says.
private func signed(header: String, payload: String) -> String {
  let text = url(header) + "." + url(payload)
  let code = Array(text.utf8).withUnsafeBytes { HMACKey(key).authenticationCode($0) }
  return text + "." + code.withUnsafeBytes { Base64.encode(url: $0) }
}

@Suite struct CompactSignatureTests {
  @Test func theTextIsTheOneThatOthersMake() {
    #expect(verify(credential) == Array(payload.utf8))
    #expect(signed(header: #"{"alg":"HS256","typ":"JWT"}"#, payload: payload) == credential)
    let id = KeyRing.Key(key).id
    #expect(id.utf8.count == 8 && id != KeyRing.Key(Array(key.reversed())).id)
    let own = Array(payload.utf8).withUnsafeBytes { CompactSignature.sign($0, with: KeyRing.Key(key)) }
    #expect(own == signed(header: #"{"alg":"HS256","kid":"\#(id)","typ":"JWT"}"#, payload: payload))
  }

  @Test func payloadsOfEveryLengthComeBack() {
    for count in 0..<200 {
      let bytes = RandomBytes.make(count: count)
      #expect(verify(bytes.withUnsafeBytes { CompactSignature.sign($0, with: KeyRing.Key(key)) }) == bytes)
    }
  }

  @Test func `only the header of a genuine text is shown to the one who accepts it`() {
    let header = #"{"typ":"JWT","alg":"HS256"}"#
    let text = signed(header: header, payload: payload)
    var shown: [[UInt8]] = []
    func verify(_ text: String, isAccepted: Bool = true) -> [UInt8]? {
      CompactSignature.verify(text, with: [SignatureKey(secret: KeyRing.Key(key))]) { header, _ in
        shown.append(header)
        return isAccepted
      }?.payload
    }
    #expect(verify(text) == Array(payload.utf8) && verify(text, isAccepted: false) == nil)
    #expect(shown == [Array(header.utf8), Array(header.utf8)])
    #expect(verify(String(text.dropLast())) == nil && verify(signed(header: header, payload: "").dropLast(3) + "AAA") == nil)
    #expect(shown.count == 2)
  }

  @Test func anUnsignedTextIsRefused() {
    #expect(verify(url(#"{"alg":"none"}"#) + "." + url(payload) + ".") == nil)
    #expect(verify(url(#"{"alg":"HS256","typ":"JWT"}"#) + "." + url(payload) + ".") == nil)
    #expect(verify(url(#"{"alg":"HS256","typ":"JWT"}"#) + "." + url(payload)) == nil)
  }

  @Test func everyChangedLetterIsNoticed() {
    let letters = Array(credential.utf8)
    for offset in letters.indices {
      for letter in [UInt8(ascii: "A"), UInt8(ascii: "b"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "="), 0]
      where letter != letters[offset] {
        var forged = letters
        forged[offset] = letter
        #expect(verify(String(decoding: forged, as: UTF8.self)) == nil)
      }
      var shorter = letters
      shorter.remove(at: offset)
      #expect(verify(String(decoding: shorter, as: UTF8.self)) == nil)
      #expect(verify(String(decoding: letters[..<offset], as: UTF8.self)) == nil)
    }
  }

  @Test func aCodeCutShortIsRefusedHere() throws {
    let parts = credential.split(separator: ".")
    let code = try #require(Base64.decode(url: String(parts[2])))
    let cut = code.prefix(16).withUnsafeBytes { Base64.encode(url: $0) }
    #expect(verify("\(parts[0]).\(parts[1]).\(cut)") == nil)
  }

  @Test(arguments: [
    "", ".", "..", "...", " ", "\0", "\u{301}", "a.b.c", credential + ".", "." + credential, credential + "\n", credential + "=",
  ])
  func whatHasNotThreePartsOfItsAlphabetIsRefused(_ text: String) {
    #expect(verify(text) == nil)
  }

  @Test func anotherKeyIsRefused() {
    var other = key
    other[31] ^= 1
    #expect(verify(credential, with: other) == nil)
    #expect(verify(credential, with: Array(key.prefix(31))) == nil)
  }

  @Test func textsBeyondTheLongestAreRefusedUnread() {
    let short = [UInt8](repeating: 0x20, count: 6000).withUnsafeBytes { CompactSignature.sign($0, with: KeyRing.Key(key)) }
    let long = [UInt8](repeating: 0x20, count: 6200).withUnsafeBytes { CompactSignature.sign($0, with: KeyRing.Key(key)) }
    #expect(short.utf8.count <= 8192 && verify(short) != nil)
    #expect(long.utf8.count > 8192 && verify(long) == nil)
  }
}
