import Cryptography
import Testing

@Suite struct P256KeyAgreementTests {
  /// The curve's order (SP 800-186, section 3.2.1.3).
  private static let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"

  private func bytes(_ text: String) throws -> [UInt8] { try #require([UInt8](hex: text)) }

  /// RFC 8291, appendix A.
  @Test func keysAndSecretAreThoseOfTheStandardOnBothSides() throws {
    let sender = try #require(P256KeyAgreement(base64URL: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    let receiver = try #require(P256KeyAgreement(base64URL: "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
    #expect(
      sender.publicKey.withUnsafeBytes { Base64.encode(url: $0) }
        == "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8")
    #expect(
      receiver.publicKey.withUnsafeBytes { Base64.encode(url: $0) }
        == "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")
    let secret = Base64.decode(url: "kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs")
    #expect(sender.sharedSecret(with: receiver.publicKey) == secret && receiver.sharedSecret(with: sender.publicKey) == secret)
  }

  /// NIST CAVP, "ECC CDH Primitive", P-256, count 0.
  @Test func theSecretIsThatOfAnotherSource() throws {
    let key = try #require(P256KeyAgreement(privateKey: bytes("7d7dc5f71eb29ddaf80d6214632eeae03d9058af1fb6d22ed80badb62bc1a534")))
    let other =
      "04700c48f77f56584c5cc632ca65640db91b6bacce3a4df6b42ce7cc838833d287"
      + "db71e509e3fd9b060ddb20ba5c51dcc5948d46fbf640dfe0441782cab85fa4ac"
    #expect(try key.sharedSecret(with: bytes(other)) == bytes("46fc62106420ff012e54a434fbdd2d25ccc5852060561e68040dd7778997bd7b"))
  }

  @Test func generatedKeysDifferAndComeBackFromTheirBytes() throws {
    let keys = (0..<20).map { _ in P256KeyAgreement.generate() }
    #expect(Set(keys.map(\.publicKey)).count == keys.count)
    for key in keys {
      let same = try #require(P256KeyAgreement(privateKey: key.privateKey()))
      #expect(same.publicKey == key.publicKey && same.privateKey() == key.privateKey())
      #expect(key.sharedSecret(with: keys[0].publicKey) == keys[0].sharedSecret(with: key.publicKey))
    }
  }

  @Test func privateKeysAreNumbersFromOneToTheOrderLessOneInExactly32Bytes() throws {
    let order = try bytes(Self.order)
    let zero = [UInt8](repeating: 0, count: 32)
    let (one, last) = (Array(zero.dropLast()) + [1], Array(order.dropLast()) + [order[31] - 1])
    #expect(P256KeyAgreement(privateKey: one)?.privateKey() == one && P256KeyAgreement(privateKey: last)?.privateKey() == last)
    for wrong in [zero, order, [UInt8](repeating: 0xFF, count: 32), [], Array(one.dropFirst()), [0] + one] {
      #expect(P256KeyAgreement(privateKey: wrong) == nil, "\(wrong.hex)")
    }
    for wrong in ["", "AA", "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw=", "yfWPiYE+n46HLnH0KqZOF1fJJU3MYrct3AELtAQ+oRw"] {
      #expect(P256KeyAgreement(base64URL: wrong) == nil, "\(wrong)")
    }
  }

  @Test func whatIsNoUncompressedPointOfTheCurveGivesNoSecret() {
    let key = P256KeyAgreement.generate()
    let point = P256KeyAgreement.generate().publicKey
    let (x, y) = (Array(point[1...32]), Array(point[33...64]))
    let isOdd = y[31] & 1
    var beside = point
    beside[64] ^= 1
    let wrong: [[UInt8]] = [
      [], [0], [4], Array(point.dropLast()), point + [0], [2 + isOdd] + x, [2 + isOdd] + x + y, [6 + isOdd] + x + y, [0] + x + y, beside,
      [4] + [UInt8](repeating: 0, count: 64), [4] + [UInt8](repeating: 0xFF, count: 64), [4] + y + x,
    ]
    for wrong in wrong { #expect(key.sharedSecret(with: wrong) == nil, "\(wrong.hex)") }
    #expect(key.sharedSecret(with: point)?.count == 32)
  }

  @Test func oneKeyServesManyThreadsAtOnce() async {
    let key = P256KeyAgreement.generate()
    let others = (0..<8).map { _ in P256KeyAgreement.generate() }
    let isSame = await withTaskGroup(of: Bool.self) { group in
      for other in others {
        group.addTask { (0..<20).allSatisfy { _ in key.sharedSecret(with: other.publicKey) == other.sharedSecret(with: key.publicKey) } }
      }
      return await group.allSatisfy { $0 }
    }
    #expect(isSame)
  }
}
