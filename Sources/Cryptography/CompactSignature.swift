/// A signed text of three parts, the compact form of RFC 7515: what device credentials and publishers' tokens are made of.
///
/// The key decides the algorithm, whatever the header says, so a text can ask for no other one, `none` included.
public enum CompactSignature {
  /// `{"alg":"HS256","typ":"JWT"}`
  private static let header = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
  /// Longer texts are refused unread: what a hello has room for is read.
  private static let longestText = 8192
  /// A key is as long as the hash, at least (RFC 7518, section 3.2).
  public static var shortestKey: Int { 32 }

  /// Signs a payload.
  public static func sign(_ payload: UnsafeRawBufferPointer, with key: HMACKey) -> String {
    var signed = header + "." + Base64.encode(url: payload)
    let code = signed.withUTF8 { key.authenticationCode(UnsafeRawBufferPointer($0)) }
    return signed + "." + code.withUnsafeBytes { Base64.encode(url: $0) }
  }

  /// Whether a header is the one that `sign` writes.
  public static func isOwnHeader(_ header: [UInt8]) -> Bool { Base64.decode(url: self.header) == header }

  /// The payload of a text that was signed with this key by HMAC-SHA256; nil for any other text.
  ///
  /// - Parameter isAccepted: asked whether a header is one that the caller takes, when the code is known to be genuine. Without it only the
  ///   header is taken that `sign` writes.
  public static func verify(
    _ text: String, with key: HMACKey, header isAccepted: ([UInt8]) -> Bool = isOwnHeader
  ) -> [UInt8]? {
    verify(text, header: isAccepted) { signature, signed in signature.count == HMACKey.codeBytes && key.verify(signature, of: signed) }
  }

  /// The payload of a text that was signed with this key; nil for any other text.
  public static func verify(_ text: String, with key: SignatureKey, header isAccepted: ([UInt8]) -> Bool) -> [UInt8]? {
    verify(text, header: isAccepted) { key.verify($0, of: $1) }
  }

  private static func verify(
    _ text: String, header isAccepted: ([UInt8]) -> Bool,
    _ isGenuine: (_ signature: UnsafeRawBufferPointer, _ signed: UnsafeRawBufferPointer) -> Bool
  ) -> [UInt8]? {
    guard text.utf8.count <= longestText else { return nil }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64.decode(url: String(Substring(parts[0]))),
      let payload = Base64.decode(url: String(Substring(parts[1]))), let signature = Base64.decode(url: String(Substring(parts[2])))
    else { return nil }
    let signed = Array(text.utf8.prefix(parts[0].count + 1 + parts[1].count))
    let isSigned = signed.withUnsafeBytes { signed in signature.withUnsafeBytes { isGenuine($0, signed) } }
    return isSigned && isAccepted(header) ? payload : nil
  }
}
