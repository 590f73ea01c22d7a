import COpenSSL

/// A key for AES-128 in Galois/Counter Mode (NIST SP 800-38D), prepared once for many messages. Confined to one thread at a time.
///
/// A sealed message is the ciphertext, as long as the plaintext, with the whole tag of 16 bytes behind it. Under one key no nonce may
/// seal two messages: both plaintexts, and the key of the tags, would be given away.
public final class AES128GCM {
  /// Bytes of a key.
  public static var keyBytes: Int { 16 }
  /// Bytes of a nonce.
  public static var nonceBytes: Int { 12 }
  /// Bytes that a sealed message has more than its plaintext.
  public static var tagBytes: Int { 16 }

  private let context: OpaquePointer

  /// Prepares a key of exactly `keyBytes`.
  public init(_ key: UnsafeRawBufferPointer) {
    OpenSSL.prepare()
    precondition(key.count == Self.keyBytes, "a key of AES-128 has 16 bytes")
    guard let context = EVP_CIPHER_CTX_new(), EVP_CipherInit_ex(context, EVP_aes_128_gcm(), nil, Self.address(key), nil, 1) == 1 else {
      preconditionFailure("OpenSSL has AES-128-GCM, and memory for its state")
    }
    self.context = context
  }

  // Freeing a context clears it.
  deinit { EVP_CIPHER_CTX_free(context) }

  /// Seals a message.
  ///
  /// - Parameters:
  ///   - nonce: `nonceBytes` bytes that have sealed nothing else under this key.
  ///   - additional: what the tag covers too, though it is not in the sealed message.
  ///   - sealed: `tagBytes` more than the plaintext has, and not the same memory.
  public func seal(
    _ plaintext: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer,
    authenticating additional: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
    into sealed: UnsafeMutableRawBufferPointer
  ) {
    precondition(sealed.count == plaintext.count + Self.tagBytes, "a sealed message is as long as its plaintext and the tag")
    let ciphertext = UnsafeMutableRawBufferPointer(rebasing: sealed.prefix(plaintext.count))
    let tag = UnsafeMutableRawBufferPointer(rebasing: sealed.suffix(Self.tagBytes))
    var none: Int32 = 0
    begin(isSealing: 1, nonce: nonce, authenticating: additional)
    update(plaintext, into: ciphertext)
    precondition(
      EVP_CipherFinal_ex(context, Self.address(tag), &none) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagBytes), tag.baseAddress) == 1,
      "OpenSSL seals what it was given")
  }

  /// Opens a sealed message; whether it is authentic. If not, nothing of its plaintext is left in the memory.
  ///
  /// - Parameters:
  ///   - nonce: the `nonceBytes` bytes that it was sealed with.
  ///   - additional: what the tag covers too.
  ///   - plaintext: `tagBytes` fewer than the sealed message has, and not the same memory.
  public func open(
    _ sealed: UnsafeRawBufferPointer, nonce: UnsafeRawBufferPointer,
    authenticating additional: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
    into plaintext: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard sealed.count >= Self.tagBytes else { return false }
    precondition(plaintext.count == sealed.count - Self.tagBytes, "a plaintext is as long as its sealed message without the tag")
    // The library takes a writable pointer to the tag that it compares with.
    var tag = Array(sealed.suffix(Self.tagBytes))
    var none: Int32 = 0
    var rest: UInt8 = 0
    begin(isSealing: 0, nonce: nonce, authenticating: additional)
    precondition(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tag.count), &tag) == 1, "OpenSSL takes a tag of 16 bytes")
    update(UnsafeRawBufferPointer(rebasing: sealed.prefix(plaintext.count)), into: plaintext)
    // A refusal is an answer: it leaves no error behind for the next caller of the library on this thread.
    ERR_set_mark()
    defer { ERR_pop_to_mark() }
    guard EVP_CipherFinal_ex(context, &rest, &none) == 1 else {
      if let start = plaintext.baseAddress { OPENSSL_cleanse(start, plaintext.count) }
      return false
    }
    return true
  }

  // MARK: The library's steps

  private func begin(isSealing: Int32, nonce: UnsafeRawBufferPointer, authenticating additional: UnsafeRawBufferPointer) {
    precondition(nonce.count == Self.nonceBytes, "a nonce has 12 bytes")
    precondition(EVP_CipherInit_ex(context, nil, nil, nil, Self.address(nonce), isSealing) == 1, "OpenSSL takes a nonce of 12 bytes")
    guard !additional.isEmpty else { return }
    var count: Int32 = 0
    precondition(
      EVP_CipherUpdate(context, nil, &count, Self.address(additional), Int32(additional.count)) == 1, "OpenSSL takes up to 2 GiB at once")
  }

  /// Nothing at all is not given to the library, which would take a missing output for additional bytes.
  private func update(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) {
    guard !input.isEmpty else { return }
    var count: Int32 = 0
    precondition(
      EVP_CipherUpdate(context, Self.address(output), &count, Self.address(input), Int32(input.count)) == 1 && Int(count) == input.count,
      "OpenSSL takes up to 2 GiB at once")
  }

  private static func address(_ bytes: UnsafeRawBufferPointer) -> UnsafePointer<UInt8>? {
    bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
  }

  private static func address(_ bytes: UnsafeMutableRawBufferPointer) -> UnsafeMutablePointer<UInt8>? {
    bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
  }
}
