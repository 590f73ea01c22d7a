import Command
import Cryptography
import Extensions
import JSON

/// The service extension of Apple's documentation ("Modifying content in newly delivered notifications"): the payload's member `ENCRYPTED`
/// has the message's body, which is shown in the place of what was published.
struct EncryptedMessage: ServiceExtension {
  private let key: ContentKey

  /// - Parameter settings: `{"key": "…"}`, in base64url.
  init(_ settings: JSONValue) throws {
    guard let key = settings["key"]?.stringValue.flatMap({ Base64.decode(url: $0) }).flatMap(ContentKey.init) else {
      throw ExtensionFailure("key is 16 to 64 bytes in base64url")
    }
    self.key = key
  }

  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    var content = bestAttempt.content
    guard let sealed = content[userInfo: "ENCRYPTED"]?.stringValue.flatMap({ Base64.decode($0) }) else { return content }
    // What is shown where it cannot be opened, or not in time.
    bestAttempt.update { $0.subtitle = "(Encrypted)" }
    content.body = String(decoding: try EncryptedContent(parsing: sealed).open(with: key), as: UTF8.self)
    content[userInfo: "ENCRYPTED"] = nil
    return content
  }
}

await Program.main(extensions: [OwnExtension("encrypted-message") { try EncryptedMessage($0) }])
