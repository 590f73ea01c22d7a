/// A signed text of three parts, the compact form of RFC 7515: what device credentials and publishers' tokens are made of.
///
/// The key decides the algorithm, whatever the header says, so a text can ask for no other one, `none` included.
public enum CompactSignature {
  /// Longer texts are refused unread: what a hello has room for is read.
  private static let longestText = 8192
  /// A key is as long as the hash, at least (RFC 7518, section 3.2).
  public static var shortestKey: Int { 32 }

  /// Signs a payload. The header names the key.
  public static func sign(_ payload: UnsafeRawBufferPointer, with key: KeyRing.Key) -> String {
    let header = Array(#"{"alg":"HS256","kid":"\#(key.id)","typ":"JWT"}"#.utf8)
    var signed = header.withUnsafeBytes { Base64.encode(url: $0) } + "." + Base64.encode(url: payload)
    let code = signed.withUTF8 { HMACKey(key.bytes).authenticationCode(UnsafeRawBufferPointer($0)) }
    return signed + "." + code.withUnsafeBytes { Base64.encode(url: $0) }
  }

  /// The payload of a text that one of these keys has signed, and that key; nil for any other text.
  ///
  /// - Parameter isAccepted: asked whether a header is one that the caller takes with a key, when the signature is known to be genuine.
  public static func verify(
    _ text: String, with keys: [SignatureKey], header isAccepted: (_ header: [UInt8], _ key: SignatureKey) -> Bool
  ) -> (payload: [UInt8], key: SignatureKey)? {
    guard text.utf8.count <= longestText else { return nil }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64.decode(url: String(Substring(parts[0]))),
      let payload = Base64.decode(url: String(Substring(parts[1]))), let signature = Base64.decode(url: String(Substring(parts[2])))
    else { return nil }
    let signed = Array(text.utf8.prefix(parts[0].count + 1 + parts[1].count))
    return signed.withUnsafeBytes { signed in
      signature.withUnsafeBytes { signature in
        keys.first { $0.verify(signature, of: signed) && isAccepted(header, $0) }.map { (payload, $0) }
      }
    }
  }
}
