import Cryptography
import Notifications

/// Signs and checks receipts. A device returns one with a response, so the cluster need not remember the notification.
///
/// The text is base64url of the receipt's bytes and the first 16 bytes of their HMAC-SHA256 (RFC 2104, section 5: truncation to at least
/// half the hash).
final class Receipts {
  private static let tagBytes = 16
  /// The longest text that is read.
  private static let longestText = 2048
  private let keys: DerivedKeys
  private var buffer = ByteBuffer(capacity: 512)

  /// - Parameter keys: the same in the whole cluster.
  init(_ keys: InForce<KeyRing>) { self.keys = DerivedKeys(of: keys, for: "carillon receipt") }

  /// Lends the signed text of an entry's receipt.
  func withText<R>(
    of entry: DeliveryEntryView, revision: Revision, deviceHash: UInt64, category: NotificationCategory?,
    _ body: (UnsafeRawBufferPointer) throws -> R
  ) rethrows -> R {
    buffer.reset()
    ReceiptView.append(of: entry, revision: revision, deviceHash: deviceHash, category: category, to: &buffer)
    let tag = buffer.withUnsafeBytes { bytes in
      keys.signing.withAuthenticationCode(bytes) { (code: UnsafeRawBufferPointer) -> (UInt64, UInt64) in
        (code.loadUnaligned(as: UInt64.self), code.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      }
    }
    withUnsafeBytes(of: tag) { buffer.append($0) }
    return try buffer.withUnsafeBytes { try Base64.withText(url: $0, body) }
  }

  /// Lends the receipt in a text; nil if the cluster did not sign it, or if a newer program did.
  func withReceipt<R>(_ text: String, _ body: (ReceiptView) throws -> R) rethrows -> R? {
    try withSigned(text) { try ReceiptView($0).map(body) } ?? nil
  }

  /// Whether a newer program of the cluster has signed a receipt.
  func isNewer(_ text: String) -> Bool { withSigned(text, ReceiptView.isNewer) ?? false }

  /// Lends the bytes of a receipt; nil if the cluster did not sign it.
  private func withSigned<R>(_ text: String, _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R? {
    guard text.utf8.count <= Self.longestText, let bytes = Base64.decode(url: text), bytes.count > Self.tagBytes else { return nil }
    return try bytes.withUnsafeBytes { bytes in
      let signed = UnsafeRawBufferPointer(rebasing: bytes.dropLast(Self.tagBytes))
      let tag = UnsafeRawBufferPointer(rebasing: bytes.suffix(Self.tagBytes))
      return keys.verify(tag, of: signed) ? try body(signed) : nil
    }
  }
}
