import COpenSSL
import Glibc

/// A certificate with its chain and its private key. It was checked when it was made.
public struct TLSIdentity: Sendable, Hashable {
  /// When the first of the certificate and its chain expires, in seconds since 1970.
  public let expires: Int64
  private let certificates: [UInt8]
  private let key: [UInt8]

  /// Reads both in PEM: the own certificate, then those that have signed it; and its key without a passphrase.
  public init(certificates: [UInt8], key: [UInt8]) throws(TLSError) {
    OpenSSL.prepare()
    (self.certificates, self.key) = (certificates, key)
    guard let end = try PEM.certificates(certificates).map(\.expires).min() else {
      throw TLSError(.badCertificate, "it holds no certificate in PEM")
    }
    expires = end
    let context = TLSContext.makeNative(TLS_server_method())
    defer { SSL_CTX_free(context) }
    try install(in: context)
  }

  /// Puts both into a context of OpenSSL.
  func install(in context: OpaquePointer) throws(TLSError) {
    let chain = try PEM.certificates(certificates)
    guard let first = chain.first, SSL_CTX_use_certificate(context, first.native) == 1 else {
      throw TLSError(.badCertificate, "its certificate cannot be used: \(TLSError.lastReason)")
    }
    for certificate in chain.dropFirst() where carillon_tls_add_chain(context, certificate.native) != 1 {
      throw TLSError(.badCertificate, "its chain cannot be used: \(TLSError.lastReason)")
    }
    let read = try PEM.key(key)
    defer { EVP_PKEY_free(read) }
    guard SSL_CTX_use_PrivateKey(context, read) == 1, SSL_CTX_check_private_key(context) == 1 else {
      throw TLSError(.badKey, "it is not the key of the certificate: \(TLSError.lastReason)")
    }
  }
}

/// A certificate of OpenSSL.
final class Certificate {
  let native: OpaquePointer

  /// Takes over a certificate.
  init(_ native: OpaquePointer) { self.native = native }

  deinit { X509_free(native) }

  /// When it expires, in seconds since 1970.
  var expires: Int64 {
    var time = tm()
    return ASN1_TIME_to_tm(X509_get0_notAfter(native), &time) == 1 ? Int64(timegm(&time)) : .max
  }
}

// Without it OpenSSL would ask for a passphrase at the terminal.
private func noPassphrase(_: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?) -> Int32 { -1 }

/// Certificates and keys as text (RFC 7468).
enum PEM {
  /// The certificates of a text, in order.
  static func certificates(_ text: [UInt8]) throws(TLSError) -> [Certificate] {
    var found: [Certificate] = []
    var isMalformed = false
    withBIO(text) { bio in
      while let native = PEM_read_bio_X509(bio, nil, noPassphrase, nil) { found.append(Certificate(native)) }
      // The end of the text is one more failure: there is no further beginning.
      isMalformed = ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE
    }
    if isMalformed { throw TLSError(.badCertificate, "its certificate number \(found.count + 1) is malformed: \(TLSError.lastReason)") }
    return found
  }

  /// The private key of a text; the caller frees it.
  static func key(_ text: [UInt8]) throws(TLSError) -> OpaquePointer {
    let key = withBIO(text) { PEM_read_bio_PrivateKey($0, nil, noPassphrase, nil) }
    guard let key else { throw TLSError(.badKey, "it holds no private key in PEM without a passphrase: \(TLSError.lastReason)") }
    return key
  }

  @discardableResult
  private static func withBIO<R>(_ text: [UInt8], _ body: (OpaquePointer?) -> R) -> R {
    ERR_clear_error()
    return text.withUnsafeBytes { bytes in
      // Its own errors are those of a missing address.
      let bio = BIO_new_mem_buf(bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1), Int32(clamping: bytes.count))
      defer { BIO_free(bio) }
      return body(bio)
    }
  }
}
