import Cryptography
import JSON
public import Notifications

/// The keys for encrypted content, by the key ids in it. No text or dump shows a key.
///
/// A key file is a JSON object: `{"keys": [{"id": "2026-11", "key": "…"}, …]}`, each key in base64url without padding. All keys are valid
/// at the same time. To rotate, add the new key to every receiver's file, let the senders change to it, and remove the old one after the
/// content of the old key has expired.
///
/// A device's file may also, or only, have the secrets for content that is sealed to this device alone (RFC 8291). They are exchanged with
/// its senders by other means: `"receiver": {"privateKey": "…", "authenticationSecret": "…"}`, 32 and 16 bytes in base64url.
public struct DecryptionKeys: Sendable, CustomStringConvertible, CustomReflectable {
  /// The longest key file, in bytes.
  public static var maximumFileBytes: Int { KeyFile.maximumBytes }
  /// The maximum number of keys in a file.
  public static var maximumKeys: Int { 1_000 }

  /// The key ids in the order of the file.
  public let ids: [String]
  /// The receiver of content for this device alone; nil if the file has none.
  public let receiver: WebPushReceiver?
  private let keys: [[UInt8]: ContentKey]

  /// Reads a key file, strictly (``KeyFile``).
  public init(parsing text: UnsafeRawBufferPointer) throws(FieldError) {
    let file = try KeyFile.object(parsing: text, members: ["keys", "receiver"])
    receiver = try file["receiver"].map { value throws(FieldError) in try Self.receiver(value) }
    // A device may have only its receiver.
    let fewest = file["keys"] == nil && receiver != nil ? 0 : 1
    let read = try KeyFile.keys(
      file["keys"] ?? (fewest == 0 ? .array([]) : .null), count: fewest...Self.maximumKeys, lengths: ContentKey.lengths,
      longestID: EncryptedContent.maximumKeyIDBytes)
    ids = read.map(\.id)
    keys = Dictionary(uniqueKeysWithValues: read.compactMap { key in ContentKey(key.bytes).map { (Array(key.id.utf8), $0) } })
  }

  /// The key with an id; nil if it is unknown.
  public subscript(id: [UInt8]) -> ContentKey? { keys[id] }

  /// The number of keys.
  public var description: String { ids.count == 1 ? "1 key" : "\(ids.count) keys" }
  /// The description only.
  public var customMirror: Mirror { Mirror(self, children: ["keys": description]) }

  // MARK: Rules

  private static func receiver(_ value: JSONValue) throws(FieldError) -> WebPushReceiver {
    try KeyFile.check(value, place: "receiver", members: ["privateKey", "authenticationSecret"])
    guard let key = value["privateKey"]?.stringValue.flatMap({ P256KeyAgreement(base64URL: $0) }) else {
      throw FieldError(field: "receiver.privateKey", rule: "This must be a private key of the curve P-256: 32 bytes in base64url.")
    }
    guard let secret = value["authenticationSecret"]?.stringValue.flatMap({ Base64.decode(url: $0) }),
      let receiver = WebPushReceiver(privateKey: key, authenticationSecret: secret)
    else {
      throw FieldError(
        field: "receiver.authenticationSecret", rule: "This must be \(WebPushReceiver.secretBytes) bytes in base64url.")
    }
    return receiver
  }
}
