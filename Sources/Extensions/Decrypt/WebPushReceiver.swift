public import Cryptography

/// Opens content that was sealed to its public key (RFC 8291).
///
/// Senders know the public key and the authentication secret. No text or dump shows that secret or the private key.
public struct WebPushReceiver: Sendable, CustomStringConvertible, CustomReflectable {
  /// Bytes of the authentication secret.
  public static var secretBytes: Int { 16 }

  private let privateKey: P256KeyAgreement
  private let authenticationSecret: [UInt8]

  /// A receiver with its private key, and the secret of `secretBytes` that its senders also have; nil for a secret of another length.
  public init?(privateKey: P256KeyAgreement, authenticationSecret: [UInt8]) {
    guard authenticationSecret.count == Self.secretBytes else { return nil }
    (self.privateKey, self.authenticationSecret) = (privateKey, authenticationSecret)
  }

  /// The public key for senders, as an uncompressed point of 65 bytes.
  public var publicKey: [UInt8] { privateKey.publicKey }

  /// Names a receiver.
  public var description: String { "a receiver by RFC 8291" }
  /// The description only.
  public var customMirror: Mirror { Mirror(self, children: ["receiver": description]) }

  /// The key of content from the owner of a public key; nil if that is not a point of the curve.
  func contentKey(sender: [UInt8]) -> ContentKey? {
    Self.contentKey(
      secret: privateKey.sharedSecret(with: sender), authenticationSecret: authenticationSecret, receiver: publicKey, sender: sender)
  }

  /// The key that both sides derive from their shared secret (RFC 8291, section 3.4).
  static func contentKey(secret: [UInt8]?, authenticationSecret: [UInt8], receiver: [UInt8], sender: [UInt8]) -> ContentKey? {
    guard let secret else { return nil }
    let derived = secret.withUnsafeBytes { HKDF.extract(salt: authenticationSecret, inputKeyingMaterial: $0) }
    return ContentKey(HKDF.expand(HMACKey(derived), info: Array("WebPush: info\0".utf8) + receiver + sender, count: 32))
  }
}

extension EncryptedContent {
  /// The plaintext of content that was sealed to a receiver's public key, if all of it is authentic; otherwise an error.
  ///
  /// Senders by RFC 8291 make a single record. Several are opened in the same way, since content may be longer here than a push message.
  public func open(for receiver: WebPushReceiver) throws(EncryptedContentError) -> [UInt8] {
    guard let key = receiver.contentKey(sender: keyID) else { throw .publicKey }
    return try open(with: key)
  }
}
