import COpenSSL
import Glibc

/// A key that verifies signatures by one algorithm of JSON Web Tokens (RFC 7518, RFC 8037).
///
/// A shared secret verifies `HS256`. A public key verifies `ES256` if it is of the curve P-256, and `EdDSA` if it is of Ed25519.
///
/// - Note: `@unchecked Sendable` because the pointer is constant, and OpenSSL allows the verification with one public key from any thread.
public final class SignatureKey: @unchecked Sendable {
  /// An algorithm, by its name in a token's header.
  public enum Algorithm: String, Sendable, CaseIterable {
    /// HMAC with SHA-256.
    case hs256 = "HS256"
    /// ECDSA with P-256 and SHA-256.
    case es256 = "ES256"
    /// Ed25519.
    case edDSA = "EdDSA"
  }

  /// The only algorithm of the key.
  public let algorithm: Algorithm
  /// What distinguishes it from others in logs: of a secret its ``KeyRing/Key/id``, of a public key some bytes of its text's digest.
  public let id: String
  private let secret: [UInt8]
  /// Nil for a secret.
  private let publicKey: OpaquePointer?

  /// The bytes of a signature by either kind of public key. For ECDSA they are two numbers of 32 bytes (RFC 7518, section 3.4).
  private static let signatureBytes = 64

  /// Makes a key of a shared secret.
  public init(secret: KeyRing.Key) {
    (algorithm, id, self.secret, publicKey) = (.hs256, secret.id, secret.bytes, nil)
  }

  /// Reads a public key in PEM (`-----BEGIN PUBLIC KEY-----`); nil for anything else, private keys and other curves included.
  public init?(pem: [UInt8]) {
    OpenSSL.prepare()
    // A refusal leaves no error behind for the next caller of the library on this thread.
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    guard let count = Int32(exactly: pem.count), let source = BIO_new_mem_buf(pem, count) else { return nil }
    defer { BIO_free(source) }
    guard let key = PEM_read_bio_PUBKEY(source, nil, nil, nil) else { return nil }
    guard let algorithm = Self.algorithm(of: key) else {
      EVP_PKEY_free(key)
      return nil
    }
    (self.algorithm, secret, publicKey) = (algorithm, [], key)
    id = KeyRing.Key.name(pem.withUnsafeBytes { Digest.sha256($0) })
  }

  deinit { EVP_PKEY_free(publicKey) }

  private static func algorithm(of key: OpaquePointer) -> Algorithm? {
    switch EVP_PKEY_get_base_id(key) {
    case EVP_PKEY_ED25519: return .edDSA
    case EVP_PKEY_EC:
      var name = [CChar](repeating: 0, count: 64)
      guard EVP_PKEY_get_group_name(key, &name, name.count, nil) == 1 else { return nil }
      return strcmp(name, SN_X9_62_prime256v1) == 0 ? .es256 : nil
    default: return nil
    }
  }

  /// Whether a signature is that of the message.
  public func verify(_ signature: UnsafeRawBufferPointer, of message: UnsafeRawBufferPointer) -> Bool {
    switch algorithm {
    case .hs256: return signature.count == HMACKey.codeBytes && HMACKey(secret).verify(signature, of: message)
    case .edDSA: return signature.count == Self.signatureBytes && isGenuine(Array(signature), message, nil)
    case .es256:
      guard signature.count == Self.signatureBytes, let encoded = Self.encoded(signature) else { return false }
      return isGenuine(encoded, message, EVP_sha256())
    }
  }

  private func isGenuine(_ signature: [UInt8], _ message: UnsafeRawBufferPointer, _ digest: OpaquePointer?) -> Bool {
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("OpenSSL has memory for a verification") }
    defer { EVP_MD_CTX_free(context) }
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    let bytes = message.bindMemory(to: UInt8.self).baseAddress
    return EVP_DigestVerifyInit(context, nil, digest, nil, publicKey) == 1
      && EVP_DigestVerify(context, signature, signature.count, bytes, message.count) == 1
  }

  /// Encodes the two numbers of an ECDSA signature as OpenSSL reads them: in DER.
  private static func encoded(_ signature: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let pair = ECDSA_SIG_new() else { return nil }
    defer { ECDSA_SIG_free(pair) }
    let bytes = Array(signature)
    guard let r = BN_bin2bn(Array(bytes[..<32]), 32, nil), let s = BN_bin2bn(Array(bytes[32...]), 32, nil),
      // The pair owns both from here on.
      ECDSA_SIG_set0(pair, r, s) == 1
    else { return nil }
    var start: UnsafeMutablePointer<UInt8>?
    let count = i2d_ECDSA_SIG(pair, &start)
    guard count > 0, let start else { return nil }
    defer { CRYPTO_free(start, "", 0) }
    return Array(UnsafeBufferPointer(start: start, count: Int(count)))
  }
}
