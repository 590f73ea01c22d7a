import Cryptography
import Testing

private func pem(_ lines: String, _ kind: String = "PUBLIC KEY") -> [UInt8] {
  Array("-----BEGIN \(kind)-----\n\(lines)\n-----END \(kind)-----\n".utf8)
}

/// The public keys of the examples in RFC 7515, appendix A.3, and RFC 8037, appendix A.2.
private let curve = pem(
  """
  MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
  6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
  """)
private let edwards = pem("MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=")

/// The texts that those examples sign.
private let texts = [
  "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    + ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
  "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
    + ".hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
]

private func verify(_ text: String, _ key: SignatureKey) -> [UInt8]? {
  CompactSignature.verify(text, with: [key]) { _, _ in true }?.payload
}

/// Signatures by public keys, with the examples of the standards.
@Suite struct SignatureKeyTests {
  @Test func theExamplesOfTheStandardsHoldForTheirKeysAlone() throws {
    let keys = [try #require(SignatureKey(pem: curve)), try #require(SignatureKey(pem: edwards)), SignatureKey(secret: KeyRing.Key(curve))]
    #expect(keys.map(\.algorithm) == [.es256, .edDSA, .hs256])
    for (number, text) in texts.enumerated() {
      for (index, key) in keys.enumerated() { #expect((verify(text, key) != nil) == (index == number), "\(text) and \(key.algorithm)") }
    }
    #expect(verify(texts[1], keys[1]).map { String(decoding: $0, as: UTF8.self) } == "Example of Ed25519 signing")
  }

  @Test func noByteOfATextMayDiffer() throws {
    for (text, bytes) in zip(texts, [curve, edwards]) {
      let key = try #require(SignatureKey(pem: bytes))
      for place in text.indices where text[place] != "." {
        var other = text
        other.replaceSubrange(place...place, with: text[place] == "A" ? "B" : "A")
        // The last letter of a part has bits that the decoding refuses.
        #expect(verify(other, key) == nil, "at \(text.distance(from: text.startIndex, to: place))")
      }
      #expect(verify(String(text.dropLast(4)), key) == nil && verify(text + "AAAA", key) == nil)
    }
  }

  @Test(arguments: [
    Array("not a key".utf8), [], pem("AAAA"), curve.dropLast(40) + [],
    // The curve P-384, and a private key.
    pem(
      """
      MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEdvl8/7rqUhKldTL7z8G6YVKgXtXdB4wC
      pKcjANDW+CUqV3NT/1JZ9JqVBhrwVMb4Khz1NvOU+n2RrkEWi9izdW34BrpG9vF/
      wY6Tp1tGs/7RAGH4pZA6QlnSB/shC+sJ
      """), pem("MC4CAQAwBQYDK2VwBCIEIItiiUF6+qiVjQoYU3MhZIYrwJUbDtc5icH2bCEk79wb", "PRIVATE KEY"),
  ])
  func onlyPublicKeysOfTheTwoCurvesAreKeys(bytes: [UInt8]) { #expect(SignatureKey(pem: bytes) == nil) }

  @Test func aSecretVerifiesWhatItHasSigned() {
    let (key, payload) = ([UInt8](0..<32), Array("payload".utf8))
    let text = payload.withUnsafeBytes { CompactSignature.sign($0, with: KeyRing.Key(key)) }
    #expect(verify(text, SignatureKey(secret: KeyRing.Key(key))) == payload && verify(text, SignatureKey(secret: KeyRing.Key([1]))) == nil)
  }
}
