import TestSupport
import Notifications
import Testing

@testable import Extensions

@Suite struct DecryptionKeysTests {
  private static let key = "yqdlZ-tYemfogSmv7Ws5PQ"

  /// The private key of RFC 8291, section 5.
  private static let receiver = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"

  @Test func aDevicesOwnKeyStandsBesideTheKeysOrAlone() throws {
    let own = #""receiver": {"privateKey": "\#(Self.receiver)", "authenticationSecret": "BTBZMqHH6r4Tts7J_aSIgg"}"#
    let alone = try parse("{\(own)}")
    #expect(alone.receiver != nil && alone.ids.isEmpty)
    let beside = try parse(#"{"keys": [\#(entry("a"))], \#(own)}"#)
    #expect(beside.receiver != nil && beside.ids == ["a"])
    var dumped = ""
    dump(beside, to: &dumped)
    #expect(!dumped.contains("q1dX") && !dumped.contains("171"), "\(dumped)")
  }

  private func parse(_ text: String) throws(FieldError) -> DecryptionKeys { try parse(Array(text.utf8)) }

  private func parse(_ bytes: [UInt8]) throws(FieldError) -> DecryptionKeys {
    try bytes.withUnsafeBytes { bytes in Result { () throws(FieldError) in try DecryptionKeys(parsing: bytes) } }.get()
  }

  private func file(_ keys: [String]) -> String { #"{"keys": [\#(keys.joined(separator: ", "))]}"# }

  private func entry(_ id: String, _ key: String = key) -> String { #"{"id": "\#(id)", "key": "\#(key)"}"# }

  @Test func contentIsOpenedWithTheKeyOfItsIdWhileSeveralAreValid() throws {
    let keys = try parse(
      file([entry("2026-10", "BO3ZVPxUlnLORbVGMpbT1Q"), entry("2026-11"), entry("Schl\\u00fcssel 🔑", String(repeating: "A", count: 43))]))
    #expect(keys.ids == ["2026-10", "2026-11", "Schlüssel 🔑"])
    for id in keys.ids {
      let key = try #require(keys[Array(id.utf8)])
      let sealed = try EncryptedContent(parsing: EncryptedContent.seal(Array(id.utf8), with: key, keyID: Array(id.utf8)))
      let found = try #require(keys[sealed.keyID])
      #expect(try sealed.open(with: found) == Array(id.utf8))
    }
    let (old, new) = (try #require(keys[Array("2026-10".utf8)]), try #require(keys[Array("2026-11".utf8)]))
    let sealed = try EncryptedContent(parsing: EncryptedContent.seal([1], with: new))
    #expect(throws: EncryptedContentError.notAuthentic(record: 0)) { try sealed.open(with: old) }
    for unknown in ["", "2026-1", "2026-12", "2026-11 ", "Schlu\u{308}ssel 🔑"] { #expect(keys[Array(unknown.utf8)] == nil) }
  }

  @Test func idsThatLookAlikeButHaveOtherBytesAreTwo() throws {
    let keys = try parse(file([entry("\u{E9}"), entry("e\u{301}", "BO3ZVPxUlnLORbVGMpbT1Q")]))
    #expect(keys[[0xC3, 0xA9]] != nil && keys[[0x65, 0xCC, 0x81]] != nil && keys[[0x65]] == nil)
  }

  @Test func asMuchAsIsAllowedIsRead() throws {
    let many = try parse(file((0..<1_000).map { entry("\($0)") }))
    #expect(many.ids.count == 1_000 && many[Array("999".utf8)] != nil)
    let longID = String(repeating: "i", count: 255)
    #expect(try parse(file([entry(longID)]))[Array(longID.utf8)] != nil)
    #expect(try parse(file([entry("a", String(repeating: "A", count: 86))])).ids == ["a"])
    let text = file([entry("a")])
    #expect(try parse(text + String(repeating: " ", count: (1 << 20) - text.utf8.count)).ids == ["a"])
  }

  /// Each wrong thing once: the text, the place, the rule.
  @Test(arguments: [
    ("", "", "The file is one JSON object by RFC 8259 (byte 0)."),
    (#"{"keys": []"#, "", "The file is one JSON object by RFC 8259 (byte 11)."),
    (#"{"keys": [{"id": "a", "key": "\#(key)"}]} x"#, "", "The file is one JSON object by RFC 8259 (byte 57)."),
    (#"[]"#, "", "This must be a JSON object."),
    (#"{}"#, "keys", "This must be an array of 1 to 1000 keys."),
    (#"{"keys": {"a": "\#(key)"}}"#, "keys", "This must be an array of 1 to 1000 keys."),
    (#"{"keys": []}"#, "keys", "This must be an array of 1 to 1000 keys."),
    (#"{"keys": [{"id": "a", "key": "\#(key)"}], "old": []}"#, "", "The members are keys and receiver, once each, and no others."),
    (#"{"keys": [], "keys": [{"id": "a", "key": "\#(key)"}]}"#, "", "The members are keys and receiver, once each, and no others."),
    (
      #"{"keys": [], "receiver": {"privateKey": "\#(receiver)", "authenticationSecret": "\#(key)"}}"#, "keys",
      "This must be an array of 1 to 1000 keys."
    ),
    (#"{"receiver": 1}"#, "receiver", "This must be a JSON object."),
    (#"{"receiver": {"privateKey": "\#(receiver)"}}"#, "receiver.authenticationSecret", "This must be 16 bytes in base64url."),
    (
      #"{"receiver": {"privateKey": "\#(key)", "authenticationSecret": "\#(key)"}}"#, "receiver.privateKey",
      "This must be a private key of the curve P-256: 32 bytes in base64url."
    ),
    (
      #"{"receiver": {"privateKey": "\#(receiver)", "authenticationSecret": "\#(receiver)"}}"#, "receiver.authenticationSecret",
      "This must be 16 bytes in base64url."
    ),
    (#"{"keys": ["\#(key)"]}"#, "keys[0]", "This must be a JSON object."),
    (#"{"keys": [{"\#(key)": "a"}]}"#, "keys[0]", "The members are id and key, once each, and no others."),
    (
      #"{"keys": [{"id": "a", "key": "\#(key)", "expires": 1}]}"#, "keys[0]", "The members are id and key, once each, and no others."
    ),
    (#"{"keys": [{"id": "a", "key": "\#(key)", "key": ""}]}"#, "keys[0]", "The members are id and key, once each, and no others."),
    (#"{"keys": [{"key": "\#(key)"}]}"#, "keys[0].id", "This member is required."),
    (#"{"keys": [{"id": 1, "key": "\#(key)"}]}"#, "keys[0].id", "This must be text of 1 to 255 bytes."),
    (#"{"keys": [{"id": "", "key": "\#(key)"}]}"#, "keys[0].id", "This must be text of 1 to 255 bytes."),
    (
      #"{"keys": [{"id": "\#(String(repeating: "ä", count: 128))", "key": "\#(key)"}]}"#, "keys[0].id",
      "This must be text of 1 to 255 bytes."
    ),
    (
      #"{"keys": [{"id": "a", "key": "\#(key)"}, {"id": "b", "key": "\#(key)"}, {"id": "\u0061", "key": "\#(key)"}]}"#, "keys[2].id",
      "The ids of a file's keys differ."
    ),
    (#"{"keys": [{"id": "a", "key": "\#(key)"}, {"id": "b"}]}"#, "keys[1].key", "This member is required."),
    (#"{"keys": [{"id": "a", "key": null}]}"#, "keys[0].key", "This must be text in base64url without padding."),
    (#"{"keys": [{"id": "a", "key": "\#(key)=="}]}"#, "keys[0].key", "This must be text in base64url without padding."),
    (#"{"keys": [{"id": "a", "key": "yqdlZ+tYemfogSmv7Ws5PQ"}]}"#, "keys[0].key", "This must be text in base64url without padding."),
    (#"{"keys": [{"id": "a", "key": ""}]}"#, "keys[0].key", "A key has 16 to 64 bytes; this one has 0."),
    (#"{"keys": [{"id": "a", "key": "AAAAAAAAAAAAAAAAAAAA"}]}"#, "keys[0].key", "A key has 16 to 64 bytes; this one has 15."),
    (
      #"{"keys": [{"id": "a", "key": "\#(String(repeating: "A", count: 87))"}]}"#, "keys[0].key",
      "A key has 16 to 64 bytes; this one has 65."
    ),
  ])
  func whatIsWrongIsNamedByItsPlaceAndRule(_ text: String, _ place: String, _ rule: String) {
    #expect(throws: FieldError(field: place, rule: rule)) { try parse(text) }
    #expect("\(FieldError(field: place, rule: rule))" == (place.isEmpty ? rule : "\(place): \(rule)"))
  }

  @Test func tooMuchIsRefused() {
    #expect(throws: FieldError(field: "keys", rule: "This must be an array of 1 to 1000 keys.")) {
      try parse(file((0..<1_001).map { entry("\($0)") }))
    }
    #expect(throws: FieldError(field: "", rule: "The file has at most 1048576 bytes.")) {
      try parse(String(repeating: " ", count: 1 << 20) + file([entry("a")]))
    }
  }

  @Test func noTextOrDumpShowsAKey() throws {
    let keys = try parse(file([entry("a"), entry("b")]))
    var dumped = ""
    dump([keys], to: &dumped)
    for text in [dumped, "\(keys)", String(reflecting: Optional(keys))] {
      #expect(text.contains("2 keys") && !text.contains("202") && !text.contains("yqdl"), "\(text)")
    }
  }

  @Test func noFileTrapsAndNoErrorShowsAKey() {
    let corpus = [file([entry("2026-11"), entry("b", "BO3ZVPxUlnLORbVGMpbT1Q")]), file([entry("a")])].map { Array($0.utf8) }
    let failures = Fuzz("key files", corpus: corpus, tokens: [#""id""#, #""key""#, #""keys""#, "[", "]", "{", "}", ":", ","]).run {
      bytes, _ in
      do throws(FieldError) {
        let keys = try DecryptionKeys(parsing: bytes)
        return keys.ids.allSatisfy { keys[Array($0.utf8)] != nil } ? nil : "an id without a key"
      } catch {
        return "\(error)".contains("yqdl") || "\(error)".contains("BO3Z") ? "the error shows a key: \(error)" : nil
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
