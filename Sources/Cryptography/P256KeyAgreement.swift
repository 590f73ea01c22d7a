import COpenSSL

/// A private key on the curve P-256 (SP 800-186), for Diffie-Hellman with somebody's public key (SP 800-56A, section 5.7.1.2).
///
/// Public keys are uncompressed points of 65 bytes: 0x04, then both coordinates (SEC 1, section 2.3.3).
///
/// - Note: `@unchecked Sendable` because both pointers are constant, and what they point to is never changed: every call that gets them
///   takes them as `const`, which OpenSSL allows from any thread (openssl-threads(7)).
public final class P256KeyAgreement: @unchecked Sendable {
  /// Bytes of a private key: a number, the most significant byte first.
  public static var privateKeyBytes: Int { 32 }
  /// Bytes of a public key.
  public static var publicKeyBytes: Int { 65 }
  /// Bytes of a shared secret.
  public static var secretBytes: Int { 32 }

  private let group: OpaquePointer
  private let number: OpaquePointer
  /// What others agree on a secret with.
  public let publicKey: [UInt8]

  /// A new key (FIPS 186-5, A.2.2: by testing candidates).
  public static func generate() -> P256KeyAgreement {
    while true {
      // Out of range is one candidate in 2^32.
      if let key = P256KeyAgreement(privateKey: RandomBytes.make(count: privateKeyBytes)) { return key }
    }
  }

  /// The key of a number from 1 to the curve's order less 1, in 32 bytes; nil for other bytes.
  public init?(privateKey bytes: [UInt8]) {
    OpenSSL.prepare()
    guard bytes.count == Self.privateKeyBytes else { return nil }
    guard let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1), let number = BN_secure_new(), let point = EC_POINT_new(group),
      BN_bin2bn(bytes, Int32(bytes.count), number) != nil
    else { preconditionFailure(Self.assumption) }
    // From here on `deinit` frees these, also where no key comes of it.
    (self.group, self.number) = (group, number)
    defer { EC_POINT_free(point) }
    // The time that a multiplication takes must not depend on the number.
    BN_set_flags(number, BN_FLG_CONSTTIME)
    var publicKey = [UInt8](repeating: 0, count: Self.publicKeyBytes)
    let isInRange = BN_is_zero(number) == 0 && BN_cmp(number, EC_GROUP_get0_order(group)) < 0
    if isInRange {
      precondition(
        EC_POINT_mul(group, point, number, nil, nil, nil) == 1
          && EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, &publicKey, publicKey.count, nil) == publicKey.count,
        Self.assumption)
    }
    self.publicKey = publicKey
    guard isInRange else { return nil }
  }

  /// The key of a text: base64url, as `Base64.decode(url:)` reads it; nil for other texts.
  public convenience init?(base64URL text: String) {
    guard let bytes = Base64.decode(url: text) else { return nil }
    self.init(privateKey: bytes)
  }

  deinit {
    BN_clear_free(number)
    EC_GROUP_free(group)
  }

  /// The secret that the owner of the other key finds with this one's public key: the first coordinate of the point that both reach.
  ///
  /// It is no key yet: derive one with `HKDF`. Nil when `publicKey` is no uncompressed point of the curve, which an attacker would send
  /// to learn the private key. More there is not to check, since every point of the curve but the one at infinity has the curve's order.
  public func sharedSecret(with publicKey: [UInt8]) -> [UInt8]? {
    guard publicKey.count == Self.publicKeyBytes, publicKey.first == UInt8(POINT_CONVERSION_UNCOMPRESSED.rawValue) else { return nil }
    guard let other = EC_POINT_new(group), let common = EC_POINT_new(group), let coordinate = BN_secure_new() else {
      preconditionFailure(Self.assumption)
    }
    defer {
      BN_clear_free(coordinate)
      EC_POINT_clear_free(common)
      EC_POINT_free(other)
    }
    // A refusal is an answer: it leaves no error behind for the next caller of the library on this thread.
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    guard EC_POINT_oct2point(group, other, publicKey, publicKey.count, nil) == 1 else { return nil }
    var secret = [UInt8](repeating: 0, count: Self.secretBytes)
    precondition(
      EC_POINT_mul(group, common, nil, other, number, nil) == 1
        && EC_POINT_get_affine_coordinates(group, common, coordinate, nil, nil) == 1
        && BN_bn2binpad(coordinate, &secret, Int32(secret.count)) == Int32(secret.count),
      Self.assumption)
    return secret
  }

  /// The private key's 32 bytes, for the file that keeps it and for nobody else.
  public func privateKey() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.privateKeyBytes)
    precondition(BN_bn2binpad(number, &bytes, Int32(bytes.count)) == Int32(bytes.count), Self.assumption)
    return bytes
  }

  private static var assumption: String { "OpenSSL has P-256, and memory for its numbers" }
}
