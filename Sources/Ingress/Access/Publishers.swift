package import Cryptography
import HTTP
import Notifications
import Worker

/// Who may publish.
package enum PublisherAdmission: Sendable {
  /// Any program, but no web page: for development.
  case anyone
  /// The bearers of tokens that one of these keys has signed.
  case token(InForce<[SignatureKey]>)
}

/// A publisher whose token holds.
struct Publisher: Sendable {
  /// Nil where any program may publish.
  var token: PublisherToken?
  /// The same for all requests with one token.
  var identity: Name = ""

  /// Whether it may know what became of a request: it may publish for each application that has the `apns-id`.
  func mayRead(_ fate: Fate) -> Bool {
    guard let token else { return true }
    return fate.applications.isEmpty ? token.applications == nil : fate.applications.allSatisfy(token.allows)
  }

  /// Why it may not publish a request; nil if it may.
  func refusal(of facts: RequestToSend.Facts) -> RequestAnswer? {
    guard let token else { return nil }
    func refusal(_ field: String, _ what: String, _ claim: String) -> RequestAnswer {
      RequestAnswer(.forbidden, "Forbidden", field, "The token does not hold for this \(what) (claim \(claim)).")
    }
    if !token.allows(facts.application) { return refusal("apns-topic", "application", "apps") }
    if !token.targets.contains(facts.isForDevice ? .device : .user) { return refusal("target", "kind of target", "targets") }
    return token.operations.contains(facts.operation) ? nil : refusal("operation", "operation", "operations")
  }
}

/// Checks the tokens of HTTP requests.
struct Publishers {
  /// Nil if any program may publish.
  private let keys: InForce<[SignatureKey]>?
  private var known: InForce<[SignatureKey]>.Version?
  private let access: AdminAccess
  /// Tokens that are genuine, since a signature by a public key costs a tenth of a millisecond. A full memory is emptied.
  private var genuine: [Name: PublisherToken] = [:]
  private static let maximum = 1_000

  /// - Parameter isLoopback: whether only programs of this machine reach the server.
  init(_ admission: PublisherAdmission, isLoopback: Bool) {
    access = AdminAccess(isLoopback: isLoopback)
    keys = if case .token(let keys) = admission { keys } else { nil }
    known = keys?.current
  }

  /// The publisher of a request; throws the answer that refuses it.
  mutating func publisher(of request: HTTPRequest, now: Int64) throws(RequestAnswer) -> Publisher {
    func refusal(_ reason: String, _ rule: String) -> RequestAnswer { RequestAnswer(.unauthorized, reason, "Authorization", rule) }
    guard let keys, var known else {
      guard let field = access.refusedField(of: request) else { return Publisher() }
      throw RequestAnswer(.forbidden, "Forbidden", field.rawValue, field.rule)
    }
    if keys.update(&known) { (self.known, genuine) = (known, [:]) }
    let fields = request.headers.values(of: "Authorization")
    let parts = fields.first?.split(separator: " ", maxSplits: 1) ?? []
    guard fields.count == 1, parts.count == 2, parts[0].lowercased() == "bearer" else {
      throw refusal("MissingProviderToken", "A request has one header of the form 'Authorization: Bearer TOKEN'.")
    }
    let identity = Name(String(parts[1]))
    let token: PublisherToken
    if let known = genuine[identity] {
      token = known
    } else {
      guard let claims = SignedToken(verifying: identity.text, with: known.value) else {
        throw refusal("InvalidProviderToken", "No key of this server has signed the token by the algorithm of its header.")
      }
      do throws(SignedToken.ClaimError) { token = try PublisherToken(claims) } catch {
        throw refusal("InvalidProviderToken", "The token's claim \(error.name) \(error.rule).")
      }
      if genuine.count >= Self.maximum { genuine = [:] }
      genuine[identity] = token
    }
    if let from = token.notBefore, from > now { throw refusal("InvalidProviderToken", "The token does not hold yet (claim nbf).") }
    guard token.expiration > now else { throw refusal("ExpiredProviderToken", "The token has expired (claim exp).") }
    return Publisher(token: token, identity: identity)
  }
}
