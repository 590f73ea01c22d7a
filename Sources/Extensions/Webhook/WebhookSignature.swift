import Cryptography

/// Says who has sent a webhook's message, and when, by the rules of Standard Webhooks (its specification, section "Signature scheme"): an
/// HMAC-SHA256 of `ID.SECONDS.BODY`, in base64 behind `v1,`, one for each key.
struct WebhookSignature {
  /// The keys: one, or two while a new one takes the place of an old one.
  private let keys: [(id: String, key: HMACKey)]

  init(_ keys: [(id: String, bytes: [UInt8])]) { self.keys = keys.map { ($0.id, HMACKey($0.bytes)) } }

  /// The header fields of a message.
  ///
  /// - Parameters:
  ///   - id: the same for a message that is sent again.
  ///   - seconds: when it is sent, since 1970.
  func headers(id: String, seconds: Int64, body: [UInt8]) -> [(name: String, value: String)] {
    let message = Array("\(id).\(seconds).".utf8) + body
    let signatures = message.withUnsafeBytes { message in
      keys.map { key in key.key.withAuthenticationCode(message) { "v1," + Base64.encode($0) } }
    }
    return [
      ("webhook-id", id), ("webhook-timestamp", "\(seconds)"), ("webhook-signature", signatures.joined(separator: " ")),
      ("webhook-key-id", keys.map(\.id).joined(separator: " ")),
    ]
  }
}
