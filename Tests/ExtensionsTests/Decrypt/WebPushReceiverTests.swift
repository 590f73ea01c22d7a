import Cryptography
import Testing

@testable import Extensions

@Suite struct WebPushReceiverTests {
  private func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.decode(url: text)) }

  /// The receiver of RFC 8291, section 5.
  private func receiver(secret: String = "BTBZMqHH6r4Tts7J_aSIgg") throws -> WebPushReceiver {
    let privateKey = try #require(P256KeyAgreement(base64URL: "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
    return try #require(WebPushReceiver(privateKey: privateKey, authenticationSecret: bytes(secret)))
  }

  private static let plaintext = Array("When I grow up, I want to be a watermelon".utf8)
  private static let content =
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
    + "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"

  @Test func theExampleOfTheStandardIsOpenedAndMade() throws {
    let (receiver, content) = (try receiver(), try bytes(Self.content))
    #expect(try EncryptedContent(parsing: content).open(for: receiver) == Self.plaintext)
    let sender = try #require(P256KeyAgreement(base64URL: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    let sealed = try EncryptedContent.seal(
      Self.plaintext, to: receiver.publicKey, authenticationSecret: bytes("BTBZMqHH6r4Tts7J_aSIgg"), padding: 0, maximum: 1_000,
      from: sender, salt: Array(content.prefix(16)))
    #expect(sealed == content)
  }

  @Test func whatIsSealedToAPublicKeyIsOpenedByItsReceiverAlone() throws {
    let secret = RandomBytes.make(count: 16)
    let receiver = try #require(WebPushReceiver(privateKey: .generate(), authenticationSecret: secret))
    let stranger = try #require(WebPushReceiver(privateKey: .generate(), authenticationSecret: secret))
    var senders: Set<[UInt8]> = []
    for count in [0, 1, 41, 4_000, 10_000] {
      let plaintext = RandomBytes.make(count: count)
      let sealed = try EncryptedContent(
        parsing: EncryptedContent.seal(plaintext, to: receiver.publicKey, authenticationSecret: secret, padding: 77))
      #expect(try sealed.open(for: receiver) == plaintext)
      #expect(sealed.recordSize > count + 77 + 17)
      #expect(throws: EncryptedContentError.notAuthentic(record: 0)) { try sealed.open(for: stranger) }
      senders.insert(sealed.keyID)
    }
    #expect(senders.count == 5)
  }

  @Test func anotherAuthenticationSecretOpensNothing() throws {
    let receiver = try receiver(secret: "BTBZMqHH6r4Tts7J_aSIgw")
    #expect(throws: EncryptedContentError.notAuthentic(record: 0)) {
      try EncryptedContent(parsing: bytes(Self.content)).open(for: receiver)
    }
  }

  /// The record size is not authenticated where there is one record; the key id is, for the key is derived from it.
  @Test func everyChangedBitIsNoticedButForThoseOfTheRecordSize() throws {
    let (receiver, content) = (try receiver(), try bytes(Self.content))
    for (offset, bit) in content.indices.flatMap({ offset in (0..<8).map { (offset, $0) } }) where !(16..<20).contains(offset) {
      var changed = content
      changed[offset] ^= 1 << bit
      #expect(throws: EncryptedContentError.self, "byte \(offset), bit \(bit)") {
        try EncryptedContent(parsing: changed).open(for: receiver)
      }
    }
  }

  @Test func keyIDsThatAreNoPublicKeyAreRefused() throws {
    let (receiver, key) = (try receiver(), try #require(ContentKey([UInt8](repeating: 1, count: 16))))
    for keyID in [[], Array("2026-11".utf8), [UInt8](repeating: 4, count: 65), Array(receiver.publicKey.dropLast())] {
      let content = try EncryptedContent(parsing: EncryptedContent.seal(Self.plaintext, with: key, keyID: keyID))
      #expect(throws: EncryptedContentError.publicKey) { try content.open(for: receiver) }
    }
  }

  @Test func sealingRefusesWhatNoReceiverCouldOpen() throws {
    let (publicKey, secret) = (try receiver().publicKey, [UInt8](repeating: 1, count: 16))
    #expect(throws: EncryptedContentError.publicKey) {
      try EncryptedContent.seal([], to: Array(publicKey.dropLast()), authenticationSecret: secret)
    }
    for count in [0, 15, 17] {
      #expect(WebPushReceiver(privateKey: .generate(), authenticationSecret: [UInt8](repeating: 1, count: count)) == nil)
    }
    for padding in [16_384 - 21 - 65 - 17 + 1, 16_384, .max] {
      #expect(throws: EncryptedContentError.tooLong(maximum: 16_384)) {
        try EncryptedContent.seal([], to: publicKey, authenticationSecret: secret, padding: padding)
      }
    }
    #expect(
      try EncryptedContent.seal([], to: publicKey, authenticationSecret: secret, padding: 16_384 - 21 - 65 - 17).count == 16_384)
  }

  @Test func noTextOrDumpShowsTheSecrets() throws {
    let receiver = try receiver()
    var dumped = ""
    dump([receiver], to: &dumped)
    for text in [dumped, "\(receiver)", String(reflecting: Optional(receiver))] {
      #expect(text.contains("a receiver by RFC 8291") && !text.contains("48") && !text.lowercased().contains("secret"), "\(text)")
    }
  }
}
