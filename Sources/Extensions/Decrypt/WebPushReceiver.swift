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

  /// Seals content to a receiver's public key, with a fresh key pair and a fresh salt, as a single record.
  ///
  /// - Parameters:
  ///   - publicKey: the receiver's, an uncompressed point of 65 bytes.
  ///   - authenticationSecret: the receiver's, 16 bytes.
  ///   - padding: zeros to add, 0 or more, which hide the length.
  ///   - maximum: the most bytes of the sealed content.
  public static func seal(
    _ plaintext: [UInt8], to publicKey: [UInt8], authenticationSecret: [UInt8], padding: Int = 0, maximum: Int = defaultMaximum
  ) throws(EncryptedContentError) -> [UInt8] {
    try seal(
      plaintext, to: publicKey, authenticationSecret: authenticationSecret, padding: padding, maximum: maximum, from: .generate(),
      salt: RandomBytes.make(count: saltBytes))
  }

  /// The same with a key pair and a salt, which must never repeat together.
  static func seal(
    _ plaintext: [UInt8], to publicKey: [UInt8], authenticationSecret: [UInt8], padding: Int, maximum: Int, from sender: P256KeyAgreement,
    salt: [UInt8]
  ) throws(EncryptedContentError) -> [UInt8] {
    guard authenticationSecret.count == WebPushReceiver.secretBytes else { throw .authenticationSecret(bytes: authenticationSecret.count) }
    let secret = sender.sharedSecret(with: publicKey)
    guard
      let key = WebPushReceiver.contentKey(
        secret: secret, authenticationSecret: authenticationSecret, receiver: publicKey, sender: sender.publicKey)
    else { throw .publicKey }
    // RFC 8291, section 4: the record size is greater than the single record.
    let content = try contentBytes(plaintext, padding: padding, maximum: maximum)
    let recordSize = min(content, recordSizes.upperBound - recordOverhead - 1) + recordOverhead + 1
    return try seal(
      plaintext, with: key, keyID: sender.publicKey, recordSize: max(defaultRecordSize, recordSize), padding: padding, maximum: maximum,
      salt: salt)
  }
}
