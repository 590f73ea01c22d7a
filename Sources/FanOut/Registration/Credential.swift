public import Cryptography
import JSON
public import Notifications
public import Worker

/// Who a device is, as the cluster's key has signed it: the claims of a compact token (RFC 7519).
public struct Credential: Sendable, Equatable {
  /// The device token, in lower case; the claim `sub`, in either case.
  public var device: String
  /// The application's bundle id; the claim `app`.
  public var application: Name
  /// The person of the device; the claim `user`.
  public var user: Name?
  /// The end of its validity, in seconds since 1970; the claim `exp`.
  public var expiration: Int64

  /// A credential with these claims.
  public init(device: String, application: Name, user: Name?, expiration: Int64) {
    self.device = device
    self.application = application
    self.user = user
    self.expiration = expiration
  }

  /// Reads the claims of a token that is genuine, which must hold at `now` (seconds since 1970).
  ///
  /// It is valid from its claim `nbf`, if it has one, until its claim `exp`, to the second; a fraction makes that time shorter. A claim of
  /// a wrong type makes it invalid: ignoring it could admit another person than the signer meant. A `user` that is null means nobody.
  public init(_ claims: SignedToken, now: Int64) throws(CredentialError) {
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
  public func sign(key: KeyRing.Key, now: Int64) -> String {
    var json = JSONWriter()
    json.openObject()
    json.member("sub", device)
    json.member("app", application)
    if let user { json.member("user", user) }
    json.member("iat", now)
    json.member("exp", expiration)
    json.closeObject()
    return json.withUnsafeBytes { CompactSignature.sign($0, with: key) }
  }
}

/// The reason why a device's credential is refused. The texts fit into a close frame.
public enum CredentialError: Error, Equatable, CustomStringConvertible {
  /// The hello has none.
  case missing
  /// It is no token that was signed with one of the cluster's keys.
  case notSigned
  /// A claim does not keep its rule.
  case claim(String, String)
  /// Its claim `nbf` lies in the future.
  case notYetValid
  /// Its claim `exp` has passed.
  case expired
  /// It is for another device, application or user than the hello names: the member that differs.
  case another(String)

  /// The mistake, and what to do.
  public var description: String {
    switch self {
    case .missing: "no credential was given: put one that 'carillon token' or your backend has signed into hello.credential"
    case .notSigned: "the credential was not signed with a key of this cluster as HS256; get another one"
    case .claim(let name, let rule): "the credential's claim \(name) \(rule); get another one"
    case .notYetValid: "the credential does not hold yet (claim nbf); wait, or get another one"
    case .expired: "the credential has expired (claim exp); get another one"
    case .another(let member): "the credential is for another \(member) than the hello; get one for this \(member)"
    }
  }
}
