import Cryptography
import JSON

/// The keys that encrypted content is opened with, by the key ids that stand in it. No text or dump shows a key.
///
/// A key file is a JSON object: `{"keys": [{"id": "2026-11", "key": "…"}, …]}`, each key in base64url without padding. All keys are valid
/// at the same time. To rotate, add the new key to every receiver's file, let the senders change to it, and remove the old one when what
/// was sealed under it has expired.
///
/// On a device the file may have, beside the keys or without them, what content is sealed to for this device alone (RFC 8291), exchanged
/// with its senders by other means: `"receiver": {"privateKey": "…", "authenticationSecret": "…"}`, 32 and 16 bytes in base64url.
public struct DecryptionKeys: Sendable, CustomStringConvertible, CustomReflectable {
  /// The longest key file, in bytes.
  public static var maximumFileBytes: Int { 1 << 20 }
  /// The most keys of a file.
  public static var maximumKeys: Int { 1_000 }

  /// The key ids in the order of the file.
  public let ids: [String]
  /// Who opens what is sealed to this device alone; nil where the file has none.
  public let receiver: WebPushReceiver?
  private let keys: [[UInt8]: ContentKey]

  /// Reads a key file, strictly: a member that is unknown or stands there twice is refused, since whoever wrote it means something by it.
  public init(parsing text: UnsafeRawBufferPointer) throws(KeyFileError) {
    guard text.count <= Self.maximumFileBytes else {
      throw KeyFileError(place: "", rule: "The file has at most \(Self.maximumFileBytes) bytes.")
    }
    let file: JSONValue
    do throws(JSONError) {
      file = try JSONValue(parsing: text)
    } catch {
      throw KeyFileError(place: "", rule: "The file is one JSON object by RFC 8259 (byte \(error.offset)).")
    }
    try Self.check(file, place: "", members: ["keys", "receiver"])
    receiver = try file["receiver"].map { value throws(KeyFileError) in try Self.receiver(value) }
    let list = file["keys"] ?? (receiver == nil ? .null : .array([]))
    guard let elements = list.elements, ((file["keys"] == nil ? 0 : 1)...Self.maximumKeys).contains(elements.count) else {
      throw KeyFileError(place: "keys", rule: "This is an array of 1 to \(Self.maximumKeys) keys.")
    }
    var ids: [String] = []
    var keys: [[UInt8]: ContentKey] = [:]
    for (index, element) in elements.enumerated() {
      let place = "keys[\(index)]"
      try Self.check(element, place: place, members: ["id", "key"])
      let id = try Self.id(element["id"], place: place + ".id")
      // Bytes are compared, not characters: those in the content are bytes.
      guard keys[Array(id.utf8)] == nil else { throw KeyFileError(place: place + ".id", rule: "The ids of a file's keys differ.") }
      keys[Array(id.utf8)] = try Self.key(element["key"], place: place + ".key")
      ids.append(id)
    }
    (self.ids, self.keys) = (ids, keys)
  }

  /// The key with an id; nil when it is unknown here.
  public subscript(id: [UInt8]) -> ContentKey? { keys[id] }

  /// How many keys there are.
  public var description: String { ids.count == 1 ? "1 key" : "\(ids.count) keys" }
  /// The description only.
  public var customMirror: Mirror { Mirror(self, children: ["keys": description]) }

  // MARK: Rules

  /// The members' names are not told: a key may have come to stand there by mistake.
  private static func check(_ value: JSONValue, place: String, members names: [String]) throws(KeyFileError) {
    guard let members = value.members else { throw KeyFileError(place: place, rule: "This is a JSON object.") }
    guard members.allSatisfy({ names.contains($0.key) }), Set(members.map(\.key)).count == members.count else {
      throw KeyFileError(place: place, rule: "The members are \(names.joined(separator: " and ")), once each, and no others.")
    }
  }

  private static func receiver(_ value: JSONValue) throws(KeyFileError) -> WebPushReceiver {
    try check(value, place: "receiver", members: ["privateKey", "authenticationSecret"])
    guard let key = value["privateKey"]?.stringValue.flatMap({ P256KeyAgreement(base64URL: $0) }) else {
      throw KeyFileError(place: "receiver.privateKey", rule: "This is a private key of the curve P-256: 32 bytes in base64url.")
    }
    guard let secret = value["authenticationSecret"]?.stringValue.flatMap({ Base64.decode(url: $0) }),
      let receiver = WebPushReceiver(privateKey: key, authenticationSecret: secret)
    else {
      throw KeyFileError(
        place: "receiver.authenticationSecret", rule: "This is \(WebPushReceiver.secretBytes) bytes in base64url.")
    }
    return receiver
  }

  private static func id(_ value: JSONValue?, place: String) throws(KeyFileError) -> String {
    let longest = EncryptedContent.maximumKeyIDBytes
    guard let value else { throw KeyFileError(place: place, rule: "This member is required.") }
    guard let id = value.stringValue, (1...longest).contains(id.utf8.count) else {
      throw KeyFileError(place: place, rule: "This is text of 1 to \(longest) bytes.")
    }
    return id
  }

  private static func key(_ value: JSONValue?, place: String) throws(KeyFileError) -> ContentKey {
    guard let value else { throw KeyFileError(place: place, rule: "This member is required.") }
    guard let bytes = value.stringValue.flatMap({ Base64.decode(url: $0) }) else {
      throw KeyFileError(place: place, rule: "This is text in base64url without padding.")
    }
    guard let key = ContentKey(bytes) else {
      let lengths = ContentKey.lengths
      throw KeyFileError(
        place: place, rule: "A key has \(lengths.lowerBound) to \(lengths.upperBound) bytes; this one has \(bytes.count).")
    }
    return key
  }
}

/// A rule that a key file does not keep, and where. It never shows a key.
public struct KeyFileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The member, as a path: `keys[3].key`; empty for the whole file.
  public let place: String
  /// The rule as a sentence that says what to do.
  public let rule: String

  /// An error of one member.
  public init(place: String, rule: String) {
    (self.place, self.rule) = (place, rule)
  }

  /// Always false: the same bytes give the same answer.
  public var isRetriable: Bool { false }

  /// Place and rule.
  public var description: String { place.isEmpty ? rule : "\(place): \(rule)" }
}
