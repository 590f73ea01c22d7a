import Cryptography
import JSON
import Notifications

/// The built-in extension `decrypt`: decrypts `encrypted-content` beside `aps`, in base64 and in the coding `aes128gcm` (RFC 8188), with
/// one of the application's keys.
///
/// A plaintext that is a JSON object changes the payload as a merge patch (RFC 7396); any other text becomes the body. Without the member,
/// or with an unknown key id (the device may have the key), the content stays unchanged. Content that cannot be decrypted is removed, since
/// nobody can read it, and the rest of the payload is shown.
public struct Decrypt: ImmediateExtension {
  /// What is shown if the content cannot be decrypted.
  public enum Fallback: String, Sendable, CaseIterable {
    /// The rest of the payload.
    case content
    /// The same with the subtitle "(Encrypted)", as in Apple's example of a service extension.
    case marked
  }

  /// The member of the payload.
  public static let member = "encrypted-content"

  private let keys: DecryptionKeys
  private let fallback: Fallback

  /// Decrypts with these keys.
  public init(_ keys: DecryptionKeys, fallback: Fallback = .content) { (self.keys, self.fallback) = (keys, fallback) }

  /// See ``ImmediateExtension/change(_:of:)``.
  public func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure? {
    guard let member = content[userInfo: Self.member] else { return nil }
    do throws(ExtensionFailure) {
      guard let plaintext = try open(member) else { return nil }
      guard let text = String(validating: plaintext, as: UTF8.self) else { throw ExtensionFailure("the plaintext is no UTF-8") }
      content[userInfo: Self.member] = nil
      Self.show(text, in: &content)
      return nil
    } catch {
      content = self.fallback(for: content)
      return error
    }
  }

  /// The content without the unreadable member.
  public func fallback(for given: MutableContent) -> MutableContent {
    var content = given
    content[userInfo: Self.member] = nil
    if fallback == .marked { content.subtitle = "(Encrypted)" }
    return content
  }

  /// Nil for an unknown key id.
  private func open(_ member: JSONValue) throws(ExtensionFailure) -> [UInt8]? {
    guard let text = member.stringValue, let bytes = Base64.decode(text) ?? Base64.decode(url: text) else {
      throw ExtensionFailure("\(Self.member) is no base64")
    }
    do throws(EncryptedContentError) {
      let content = try EncryptedContent(parsing: bytes, maximum: Self.maximumBytes)
      if let key = keys[content.keyID] { return try content.open(with: key) }
      guard let receiver = keys.receiver, content.keyID.count == receiver.publicKey.count else { return nil }
      return try content.open(for: receiver)
    } catch {
      throw ExtensionFailure("\(Self.member): \(error)")
    }
  }

  /// The most bytes of the largest payload.
  private static let maximumBytes = 32_768

  private static func show(_ text: String, in content: inout MutableContent) {
    if let patch = try? JSONValue(parsing: text), case .object = patch {
      content.merge(patch)
    } else {
      content.body = text
    }
  }
}

// MARK: Settings

extension Decrypt {
  /// Reads the members `keys`, the file of the keys, and `fallback`.
  init(_ settings: inout SettingsObject, at place: ExtensionsFile.Place) throws(FieldError) {
    let fallback = try settings.word("fallback", default: Fallback.content)
    let (path, bytes) = try settings.file("keys", limit: DecryptionKeys.maximumFileBytes)
    do throws(FieldError) {
      let keys = try bytes.withUnsafeBufferPointer { text throws(FieldError) in
        try DecryptionKeys(parsing: UnsafeRawBufferPointer(text))
      }
      guard keys.receiver == nil || place == .device else {
        throw FieldError(field: "receiver", rule: "A device's private key stays on the device.")
      }
      self.init(keys, fallback: fallback)
    } catch {
      throw settings.wrong("keys", "\(path): \(error)")
    }
  }
}
