import Cryptography
import Testing

@testable import Extensions

/// Content that other code has sealed: Python's http-ece 1.2.1, with keys, secrets and salts of its own choice.
///
/// Each was made by `http_ece.encrypt(plaintext, salt=…, key=…, keyid=…, rs=…, version="aes128gcm")`, those for a public key by
/// `http_ece.encrypt(plaintext, salt=…, private_key=sender, dh=receiver, auth_secret=…, rs=…, version="aes128gcm")`.
@Suite struct OtherImplementationTests {
  private struct Case {
    let plaintext, keyID: String
    let recordSize: Int
    let key, content: String
  }

  private static let cases = [
    Case(
      plaintext: "Seven o’clock?", keyID: "2026-11", recordSize: 4096, key: "VAiZpHewl3uKyHIdAsJzLg",
      content: "Xcft728oeNDdFJzOugfY_QAAEAAHMjAyNi0xMda9I1ecjrLAfN2Ns7CQvCs0EexsmvYsO3GfqDS1bN3aDQ"),
    Case(
      plaintext: "Grüße 🔔", keyID: "Schlüssel", recordSize: 18, key: "sky66pbNaIVF4dOlll4a9w",
      content: "Sil_cPVG9KC_BkhhyTK20gAAABIKU2NobMO8c3NlbAq_ipJIT2oXVbNNwHDltH3UpEhHrsnXwg1LNilFKGN6RiuW1XG6JKLoH1iu"
        + "rNM32LdIjyly7gli5T9hkzXh6b-Y2--pVCtAhVkQpz9YtBH5d62hYesvTVIt0HDWpQI2eEG_mQCXyn6mfZdWAejufDrNZAlrCm5b"
        + "u5wTEZ-0IAmRpiL8bjc9_30tEz2CQ_rLqq-lkpHDedqSRHSMbSlN-OQBemPru8qoX2AMaeYAolD5O8Fv9E5g1TMV2oXTKk6do70K"
        + "0-Xbmb4bN7yReomjLxOvs1yHUMo65A"),
    Case(
      plaintext: "eight by eight, exactly!", keyID: "k", recordSize: 25, key: "UQYSycziKuLTyJWoipLWEnFZvlFFtAdjuglh8f8TPXk",
      content: "YwSG8pynfpmZbBR2wWLYBQAAABkBa_DstWCNG2DIRaYb3l0wN_i7XF22AgA1qiMAwLLOTVYz4Ut8cEb629mupibIV-7DsOrQHUtK"
        + "nZwEDne7pS4k0vsjCAj9AOIHD5HHKw"),
    Case(
      plaintext: #"{"title":"Ada","body":"Seven o’clock?"}"#, keyID: "", recordSize: 40,
      key: "qQdPzdMXo19ma4AunNxrg3GMQQChFpHZZibgDooJFpT780Uev-qb5gJPkJ2JZS5ax_GDHvMum0Ej7znPu7aIfw",
      content: "4DvkX_9Xgbmcc0mt_lKDNwAAACgAWj9t_aSd_-ZJBGdXaZA5uBbsWKGc7T5-O_9I2LcgTOoiz54sjA9T7JTWotTvhmpvi9WfBiwG"
        + "oQHQiS_a3h2XmT77Ef6THNgxWwWj"),
  ]

  private struct WebPushCase {
    let plaintext: String
    let recordSize: Int
    let privateKey, authenticationSecret, content: String
  }

  private static let webPushCases = [
    WebPushCase(
      plaintext: "Seven o’clock?", recordSize: 4096, privateKey: "ciy-chcwc1G4TuIotj3FLJsf2fB41gZmgRR0atRytuE",
      authenticationSecret: "FNkHzs5HwK7tFOWb2ykMDA",
      content: "DwRA-iKUZoWf_O-1bKY2JQAAEABBBOZUB2Cug9qkLF1qajZgJ5DfU-rCorDwSvJOjNJlvYu2l6gAguglIJYkbAGEQtNV-cNmQ6xL"
        + "Kzu5GvltGJJD49XSdRQo9Ibwdm8zNFuMz0-T_MPq6COSu5eTgCAr56bpCoY"),
    WebPushCase(
      plaintext: "Grüße aus Wien 🔔, in several records", recordSize: 32, privateKey: "s4kjmFNiqCdNfJWPyEADcci36cyM40dkgaNIiZAVJPI",
      authenticationSecret: "wuqNWBqN-tReJhvd9--x5g",
      content: "xS7reNpwmaYIdB0wgCFklgAAACBBBKwLLGx9gSk8cjvh9eNkHRtA-Yw8JfucT-spqGWvLBAd8pNukkoF4lzg0fChj3Fc6XM-V4UO"
        + "_uWV6_sTiLsDNm7nhVQctkO06iZxCiUievxpO0-o2Dv6Y_AKECeGj2pj7L9HSCqFx0tEsRLlg4eFKhHz1QyU5ieybl8XLLo1j084"
        + "7Yll1ZNFAAsaAsV23LiVItQSNV-YF2kf6qFn5Q"),
  ]

  private func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.decode(url: text)) }

  @Test(arguments: cases.indices)
  func whatOthersSealIsOpened(_ index: Int) throws {
    let vector = Self.cases[index]
    let content = try EncryptedContent(parsing: bytes(vector.content))
    #expect(content.keyID == Array(vector.keyID.utf8) && content.recordSize == vector.recordSize)
    let key = try #require(ContentKey(bytes(vector.key)))
    #expect(try content.open(with: key) == Array(vector.plaintext.utf8))
  }

  @Test(arguments: cases.indices)
  func whatIsSealedHasTheSameBytesAsThatOfOthers(_ index: Int) throws {
    let vector = Self.cases[index]
    let (content, key) = (try bytes(vector.content), try #require(ContentKey(bytes(vector.key))))
    let sealed = try EncryptedContent.seal(
      Array(vector.plaintext.utf8), with: key, keyID: Array(vector.keyID.utf8), recordSize: vector.recordSize, padding: 0, maximum: 1_000,
      salt: Array(content.prefix(16)))
    #expect(sealed == content)
  }

  @Test(arguments: webPushCases.indices)
  func whatOthersSealToAPublicKeyIsOpened(_ index: Int) throws {
    let vector = Self.webPushCases[index]
    let privateKey = try #require(P256KeyAgreement(base64URL: vector.privateKey))
    let receiver = try #require(WebPushReceiver(privateKey: privateKey, authenticationSecret: bytes(vector.authenticationSecret)))
    let content = try EncryptedContent(parsing: bytes(vector.content))
    #expect(content.recordSize == vector.recordSize)
    #expect(try content.open(for: receiver) == Array(vector.plaintext.utf8))
  }
}
