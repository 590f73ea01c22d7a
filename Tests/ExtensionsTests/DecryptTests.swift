import Cryptography
import Extensions
import JSON
import Notifications
import TestSupport
import Testing

@Suite struct DecryptTests {
  private static let key = [UInt8](repeating: 7, count: 16)
  private let request = ExtensionRequest(
    id: NotificationID(high: 1, low: 2), identifier: "i", application: "com.example.shop", expiration: 0)

  private static func keys(_ id: String, _ key: [UInt8]) throws -> DecryptionKeys {
    let text = #"{"keys":[{"id":"\#(id)","key":"\#(key.withUnsafeBytes { Base64.encode(url: $0) })"}]}"#
    return try Array(text.utf8).withUnsafeBytes { try DecryptionKeys(parsing: $0) }
  }

  private static func sealed(_ plaintext: String, _ change: (inout [UInt8]) -> Void = { _ in }) throws -> JSONValue {
    let key = try #require(ContentKey(key))
    var bytes = try EncryptedContent.seal(Array(plaintext.utf8), with: key, keyID: Array("one".utf8))
    change(&bytes)
    return .string(bytes.withUnsafeBytes { Base64.encode($0) })
  }

  private func run(_ decrypt: Decrypt, _ content: JSONValue) -> ExtensionRun {
    var run = ExtensionRun(
      MutableContent(payload: ["aps": ["alert": ["title": "News", "body": "You have a message"]], "encrypted-content": content]))
    run.pass([ExtensionChain.Step(name: "open", work: decrypt)], of: request, ContentRules())
    return run
  }

  @Test func aTextBecomesTheBody() throws {
    let run = run(Decrypt(try Self.keys("one", Self.key)), try Self.sealed("Meet me at nine"))
    #expect(run.outcomes.map(\.state) == [.modified])
    #expect(run.content.payload == ["aps": ["alert": ["title": "News", "body": "Meet me at nine"]]])
  }

  @Test func anObjectIsMergedIntoThePayload() throws {
    let run = run(
      Decrypt(try Self.keys("one", Self.key)), try Self.sealed(#"{"aps":{"alert":{"title":null,"body":"At nine"},"badge":3},"from":"ada"}"#)
    )
    #expect(run.outcomes.map(\.state) == [.modified])
    #expect(run.content.payload == ["aps": ["alert": ["body": "At nine"], "badge": 3], "from": "ada"])
  }

  @Test func whatHasAnUnknownKeyIdIsLeftToTheDevice() throws {
    let content = try Self.sealed("secret")
    let run = run(Decrypt(try Self.keys("other", Self.key)), content)
    #expect(run.outcomes.map(\.state) == [.unchanged] && run.outcomes[0].failure == nil)
    #expect(run.content[userInfo: "encrypted-content"] == content)
  }

  @Test(arguments: [Decrypt.Fallback.content, .marked]) func whatCannotBeOpenedIsTakenAway(_ fallback: Decrypt.Fallback) throws {
    let wrongKey = Decrypt(try Self.keys("one", [UInt8](repeating: 8, count: 16)), fallback: fallback)
    let rightKey = Decrypt(try Self.keys("one", Self.key), fallback: fallback)
    let cases: [(Decrypt, JSONValue)] = [
      (wrongKey, try Self.sealed("secret")), (rightKey, try Self.sealed("secret") { $0[$0.count - 1] ^= 1 }),
      (rightKey, try Self.sealed("secret") { $0.removeLast(3) }), (rightKey, "no base64!"), (rightKey, 7), (rightKey, ""),
      (rightKey, try Self.sealed(#"{"aps":{"alert":null}}"#)), (rightKey, try Self.sealed(#"{"aps":1}"#)),
    ]
    for (decrypt, content) in cases {
      let run = run(decrypt, content)
      #expect(run.outcomes.map(\.state) == [.failed])
      #expect(run.outcomes[0].failure?.reason.contains("secret") == false)
      #expect(run.content[userInfo: "encrypted-content"] == nil && run.content.body == "You have a message")
      #expect(run.content.subtitle == (fallback == .marked ? "(Encrypted)" : nil))
      #expect(run.written != nil, "the ciphertext is not shown")
    }
  }

  /// The example of RFC 8291, section 5.
  @Test func whatIsSealedToADeviceAloneIsOpenedThere() throws {
    let text =
      #"{"receiver":{"privateKey":"q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94","authenticationSecret":"BTBZMqHH6r4Tts7J_aSIgg"}}"#
    let decrypt = Decrypt(try Array(text.utf8).withUnsafeBytes { try DecryptionKeys(parsing: $0) })
    let content: JSONValue =
      "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    #expect(run(decrypt, content).content.body == "When I grow up, I want to be a watermelon")
    // What has the id of a key that is not here is not sealed to the device.
    let other = run(decrypt, try Self.sealed("secret"))
    #expect(other.outcomes.map(\.state) == [.unchanged])
  }

  @Test func theFileOfKeysIsNamedWhereItIsWrong() throws {
    func error(_ settings: String) -> String? {
      do {
        _ = try ExtensionsFile(
          parsing: Array(#"{"applications":{"a":[{"name":"open","use":"decrypt"\#(settings)}]}}"#.utf8), in: "/nowhere")
        return nil
      } catch { return "\(error)" }
    }
    #expect(error("") == #"applications["a"][0].keys: This member is required."#)
    #expect(error(#","keys":"k.json""#) == #"applications["a"][0].keys: /nowhere/k.json: there is no such file"#)
    #expect(error(#","keys":"/dev/null""#) == #"applications["a"][0].keys: /dev/null: only a regular file is read"#)
    #expect(error(#","keys":"/etc/hostname""#)?.hasPrefix(#"applications["a"][0].keys: /etc/hostname: "#) == true)
    #expect(error(#","keys":"k","fallback":"none""#) == #"applications["a"][0].fallback: This must be one of: content, marked."#)
  }
}
