/// A signed text of three parts, the compact form of RFC 7515, with HMAC-SHA256 (`HS256`): what device credentials are made of.
///
/// Only the header that `sign` writes is read again, so no other algorithm, `none` included, can be asked for.
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

  /// The payload of a text that was signed with this key; nil for any other text.
  public static func verify(_ text: String, with key: HMACKey) -> [UInt8]? {
    guard text.utf8.count <= longestText else { return nil }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0] == header, let payload = Base64.decode(url: String(parts[1])),
      let code = Base64.decode(url: String(parts[2])), code.count == HMACKey.codeBytes
    else { return nil }
    var signed = header + "." + parts[1]
    let isGenuine = signed.withUTF8 { signed in
      code.withUnsafeBytes { key.verify($0, of: UnsafeRawBufferPointer(signed)) }
    }
    return isGenuine ? payload : nil
  }
}
