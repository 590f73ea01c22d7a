package import Cryptography
import JSON
package import Notifications
import Worker

/// Who a device is, as the cluster's key has signed it: the claims of a compact token (RFC 7519).
package struct Credential: Sendable, Equatable {
  /// The device token, in lower case; the claim `sub`, in either case.
  var device: String
  /// The application's bundle id; the claim `app`.
  var application: Name
  /// The person of the device; the claim `user`.
  var user: Name?
  /// The end of its validity, in seconds since 1970; the claim `exp`.
  package var expiration: Int64

  /// A credential with these claims.
  package init(device: String, application: Name, user: Name?, expiration: Int64) {
    self.device = device
    self.application = application
    self.user = user
    self.expiration = expiration
  }

  /// Reads the claims of a token that is genuine, which must hold at `now` (seconds since 1970).
  ///
  /// It is valid from its claim `nbf`, if it has one, until its claim `exp`, to the second; a fraction makes that time shorter. A claim of
  /// a wrong type makes it invalid: ignoring it could admit another person than the signer meant. A `user` that is null means nobody.
  init(_ claims: SignedToken, now: Int64) throws(CredentialError) {
    guard !claims.isForPublishers else { throw .claim("aud", "says that it is a publisher's token") }
    let from: Int64?
    do throws(SignedToken.ClaimError) {
      guard let device = try claims.text("sub") else { throw .init("sub", "is missing: it must be the device token") }
      guard let application = try claims.text("app") else { throw .init("app", "is missing: it must be the application") }
      guard let expiration = try claims.seconds("exp", .down) else { throw .init("exp", "is missing: it must be when it expires") }
      let user = claims.has("user") ? try claims.text("user") : nil
      from = try claims.seconds("nbf", .up)
      _ = try claims.seconds("iat", .down)
      self.init(
        device: DeviceToken(device)?.text ?? device, application: Name(application), user: user.map { Name($0) }, expiration: expiration)
    } catch {
      throw .claim(error.name, error.rule)
    }
    if let from, from > now { throw .notYetValid }
    guard expiration > now else { throw .expired }
  }

  /// The token, signed at `now` (seconds since 1970).
  package func sign(key: KeyRing.Key, now: Int64) -> String {
    let claims = JSONValue.object(present: ["sub": device, "app": application, "user": user, "iat": now, "exp": expiration])
    return Array(claims.text.utf8).withUnsafeBytes { CompactSignature.sign($0, with: key) }
  }
}

/// The reason why a device's credential is refused, and what to do. The texts fit into a close frame.
package struct CredentialError: Error, Equatable, CustomStringConvertible {
  /// The mistake, and what to do.
  package let description: String

  private init(_ description: String) { self.description = description }

  /// The hello has none.
  static let missing = Self("no credential was given: put one that 'carillon token' or your backend has signed into hello.credential")
  /// It is no token that was signed with one of the cluster's keys.
  static let notSigned = Self("the credential was not signed with a key of this cluster as HS256; get another one")
  /// A claim does not keep its rule.
  static func claim(_ name: String, _ rule: String) -> Self { Self("the credential's claim \(name) \(rule); get another one") }
  /// Its claim `nbf` lies in the future.
  static let notYetValid = Self("the credential does not hold yet (claim nbf); wait, or get another one")
  /// Its claim `exp` has passed.
  static let expired = Self("the credential has expired (claim exp); get another one")
  /// It is for another device, application or user than the hello names: the member that differs.
  static func another(_ member: String) -> Self {
    Self("the credential is for another \(member) than the hello; get one for this \(member)")
  }
}
