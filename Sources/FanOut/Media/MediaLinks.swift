import Cryptography
import Notifications

/// The address of media for devices.
package struct MediaLinkSettings: Sendable {
  /// The beginning of links, such as `https://push.example.com`.
  package var base: String
  /// How long a link is valid, in seconds.
  package var seconds: Int64

  /// Makes the settings of a cluster.
  package init(base: String, seconds: Int64) { (self.base, self.seconds) = (base, seconds) }
}

/// Signs and checks links to media: `BASE/v1/media/HASH?device=…&expires=…&signature=…`, each for one device and a while. Confined to one
/// thread at a time.
///
/// The signature is base64url of the first 16 bytes of the HMAC-SHA256 of the rest (RFC 2104, section 5: truncation to half the hash).
final class MediaLinks {
  /// The beginning of a link's path.
  static let path = "/v1/media/"
  private static let tagBytes = 16
  /// How far a device's clock may be behind that of the worker that has signed its link.
  private static let leewaySeconds: Int64 = 60

  private let base: String
  private let seconds: Int64
  private let keys: DerivedKeys

  /// - Parameters:
  ///   - settings: what links are made of; nil if they are only checked.
  ///   - keys: the same in the whole cluster.
  init(_ settings: MediaLinkSettings?, _ keys: InForce<KeyRing>) {
    (base, seconds) = (settings?.base ?? "", settings?.seconds ?? 0)
    self.keys = DerivedKeys(of: keys, for: "carillon media")
  }

  /// A link for a device, valid from now on.
  func link(to hash: MediaHash, deviceHash: UInt64, now: Int64) -> MediaLink {
    let expires = now + seconds
    let device = String(deviceHash, radix: 16)
    let tag = Array("\(hash) \(device) \(expires)".utf8).withUnsafeBytes { keys.signing.authenticationCode($0) }
    let signature = tag.prefix(Self.tagBytes).withUnsafeBytes { Base64.encode(url: $0) }
    return MediaLink(
      url: "\(base)\(Self.path)\(hash)?device=\(device)&expires=\(expires)&signature=\(signature)", expires: expires)
  }

  /// The validity of a link.
  enum Judgement: Equatable {
    /// It is valid for so many seconds.
    case good(seconds: Int64)
    case expired
    /// This cluster has not signed it.
    case wrong
  }

  /// Judges a link by its parts.
  func judge(_ hash: MediaHash, device: String?, expires: String?, signature: String?, now: Int64) -> Judgement {
    guard let device, let expires, let signature, device.utf8.count <= 16, expires.utf8.count <= 20, signature.utf8.count <= 64,
      let end = Int64(expires), let tag = Base64.decode(url: signature), tag.count == Self.tagBytes
    else { return .wrong }
    let isGenuine = tag.withUnsafeBytes { tag in
      Array("\(hash) \(device) \(expires)".utf8).withUnsafeBytes { keys.verify(tag, of: $0) }
    }
    guard isGenuine else { return .wrong }
    return end > now - Self.leewaySeconds ? .good(seconds: max(0, end - now)) : .expired
  }
}
