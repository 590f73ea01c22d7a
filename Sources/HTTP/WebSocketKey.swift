import Cryptography

/// The handshake's key and its answer (RFC 6455, section 4.2.2).
enum WebSocketKey {
  private static let salt = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

  /// A new key of a client: 16 unpredictable bytes.
  static func make() -> String {
    RandomBytes.make(count: 16).withUnsafeBytes { Base64.encode($0) }
  }

  /// Whether a client's key is 16 bytes in base64.
  static func isWellFormed(_ key: String) -> Bool {
    let utf8 = key.utf8
    guard utf8.count == 24, key.hasSuffix("==") else { return false }
    return utf8.dropLast(2).allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2F: true
      default: false
      }
    }
  }

  /// The server's answer to a key.
  static func accept(_ key: String) -> String { Digest.sha1(key + salt).withUnsafeBytes { Base64.encode($0) } }
}
