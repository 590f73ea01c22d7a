import Cryptography
import JSON

/// Who a device is, as the cluster's key has signed it: the claims of a compact token (RFC 7519).
public struct Credential: Sendable, Equatable {
  /// The device token; the claim `sub`.
  public var device: String
  /// The application's bundle id; the claim `app`.
  public var application: String
  /// Whose device it is; the claim `user`.
  public var user: String?
  /// Until when it holds, in seconds since 1970; the claim `exp`.
  public var expiration: Int64

  /// A credential of its claims.
  public init(device: String, application: String, user: String?, expiration: Int64) {
    self.device = device
    self.application = application
    self.user = user
    self.expiration = expiration
  }

  /// Reads a token that was signed with the key and still holds at `now` (seconds since 1970); nil for any other text.
  public init?(verifying token: String, key: [UInt8], now: Int64) {
    guard let payload = CompactSignature.verify(token, with: HMACKey(key)),
      let claims = payload.withUnsafeBytes({ try? JSONValue(parsing: $0) }),
      let device = claims["sub"]?.stringValue, let application = claims["app"]?.stringValue,
      let expiration = claims["exp"]?.integerValue, expiration > now
    else { return nil }
    self.init(device: device, application: application, user: claims["user"]?.stringValue, expiration: expiration)
  }

  /// The token, signed at `now` (seconds since 1970).
  public func sign(key: [UInt8], now: Int64) -> String {
    var json = JSONWriter()
    json.openObject()
    json.member("sub", device)
    json.member("app", application)
    if let user { json.member("user", user) }
    json.member("iat", now)
    json.member("exp", expiration)
    json.closeObject()
    return json.withUnsafeBytes { CompactSignature.sign($0, with: HMACKey(key)) }
  }
}
