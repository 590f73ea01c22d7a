import COpenSSL

/// Why TLS cannot be configured, or why a session has failed.
public struct TLSError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The failures that callers distinguish; the raw values are for metrics and logs.
  public enum Code: String, Sendable, CaseIterable {
    /// A text holds no certificate, or one that cannot be used.
    case badCertificate = "bad_certificate"
    /// A text holds no private key, or one that does not belong to the certificate.
    case badKey = "bad_key"
    /// The peer's certificate has expired, or is not valid yet.
    case expired
    /// The peer's certificate is for other names.
    case wrongName = "wrong_name"
    /// No known authority has signed the peer's certificate.
    case unknownAuthority = "unknown_authority"
    /// The peer's certificate breaks another rule.
    case untrusted
    /// The peer and this side have no version, cipher or application protocol in common.
    case nothingInCommon = "nothing_in_common"
    /// The peer speaks HTTP without TLS.
    case plainHTTP = "plain_http"
    /// The peer has ended the session with an alert.
    case alert
    /// The peer breaks the protocol, or does not speak TLS.
    case violation

    /// Those of a server's sessions, which ask for no certificate.
    public static let ofSessions: [Code] = [.nothingInCommon, .plainHTTP, .alert, .violation]
  }

  /// The kind of failure.
  public let code: Code
  /// The failure in one line.
  public let description: String

  init(_ code: Code, _ description: String) { (self.code, self.description) = (code, description) }

  /// The reason of the last failed call of OpenSSL on this thread.
  static var lastReason: String {
    guard let text = ERR_reason_error_string(ERR_peek_error()) else { return "OpenSSL names no reason" }
    return String(cString: text)
  }

  /// The failure of a session's last call.
  ///
  /// - Parameter verification: OpenSSL's result for the peer's certificate.
  static func ofSession(verification: Int) -> TLSError {
    if verification != X509_V_OK { return ofCertificate(verification) }
    let reason = lastReason
    switch ERR_GET_REASON(ERR_peek_error()) {
    case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: return TLSError(.plainHTTP, "the peer speaks HTTP without TLS")
    case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_NO_SHARED_CIPHER, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, SSL_R_NO_APPLICATION_PROTOCOL,
      SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SUITABLE_KEY_SHARE, SSL_R_VERSION_TOO_LOW:
      return TLSError(.nothingInCommon, "nothing in common with the peer: \(reason)")
    case let number where number >= SSL_AD_REASON_OFFSET: return TLSError(.alert, "the peer has ended the session: \(reason)")
    default: return TLSError(.violation, "the peer breaks the protocol: \(reason)")
    }
  }

  private static func ofCertificate(_ result: Int) -> TLSError {
    let text = X509_verify_cert_error_string(result).map { String(cString: $0) } ?? "error \(result)"
    switch Int32(truncatingIfNeeded: result) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return TLSError(.expired, "the peer's certificate has expired")
    case X509_V_ERR_CERT_NOT_YET_VALID: return TLSError(.expired, "the peer's certificate is not valid yet")
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
      return TLSError(.wrongName, "the peer's certificate is for another name")
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
      X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return TLSError(.unknownAuthority, "no known authority has signed the peer's certificate: \(text)")
    default: return TLSError(.untrusted, "the peer's certificate cannot be trusted: \(text)")
    }
  }
}
