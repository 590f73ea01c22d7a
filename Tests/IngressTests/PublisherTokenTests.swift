import Cryptography
import Notifications
import TestSupport
import Testing
import Worker

@testable import Ingress

/// Which tokens hold, and for what.
@Suite struct PublisherTokenTests {
  static let key: [UInt8] = Array("0123456789abcdef0123456789abcdef".utf8)

  /// A token with these claims, signed whatever they say.
  static func sign(_ claims: String, key: [UInt8] = key) -> String {
    Array(claims.utf8).withUnsafeBytes { CompactSignature.sign($0, with: KeyRing.Key(key)) }
  }

  private static func read(_ claims: String) throws -> PublisherToken {
    let signed = try #require(SignedToken(verifying: sign(claims), with: [SignatureKey(secret: KeyRing.Key(key))]))
    return try PublisherToken(signed)
  }

  @Test func aTokenIsReadAsItWasSigned() throws {
    var token = PublisherToken(
      applications: ["a.b", "c.d"], targets: [.user], operations: [.notify, .remove], publisher: "shop", expiration: 4_000_000_000)
    let signed = try #require(
      SignedToken(verifying: token.sign(key: KeyRing.Key(Self.key), now: 5), with: [SignatureKey(secret: KeyRing.Key(Self.key))]))
    #expect(try PublisherToken(signed) == token)
    #expect(token.allows("a.b") && !token.allows("a.b.voip") && !token.allows("A.B"))
    token = PublisherToken(applications: ["*"], publisher: nil, expiration: 1)
    #expect(token.allows("anything") && token.targets.count == 2 && token.operations.count == 3)
  }

  @Test(arguments: [
    (#"{"apps":["a"],"exp":1}"#, "aud"), (#"{"aud":"carillon","apps":["a"],"exp":1}"#, "aud"),
    (#"{"aud":"carillon-publish","exp":1}"#, "apps"), (#"{"aud":"carillon-publish","apps":[],"exp":1}"#, "apps"),
    (#"{"aud":"carillon-publish","apps":["a",1],"exp":1}"#, "apps"), (#"{"aud":"carillon-publish","apps":{"a":1},"exp":1}"#, "apps"),
    (#"{"aud":"carillon-publish","apps":["a"]}"#, "exp"), (#"{"aud":"carillon-publish","apps":["a"],"exp":"1"}"#, "exp"),
    (#"{"aud":"carillon-publish","apps":["a"],"exp":1e300}"#, "exp"),
    (#"{"aud":"carillon-publish","apps":["a"],"exp":1,"targets":["users"]}"#, "targets"),
    (#"{"aud":"carillon-publish","apps":["a"],"exp":1,"operations":[]}"#, "operations"),
    (#"{"aud":"carillon-publish","apps":["a"],"exp":1,"operations":null}"#, "operations"),
    (#"{"aud":"carillon-publish","apps":["a"],"exp":1,"sub":5}"#, "sub"),
    (#"{"aud":"carillon-publish","apps":["a"],"exp":1,"nbf":true}"#, "nbf"),
  ])
  func `a claim that breaks its rule is named`(claims: String, name: String) {
    let error = #expect(throws: SignedToken.ClaimError.self) { try Self.read(claims) }
    #expect(error?.name == name, "\(String(describing: error))")
  }

  @Test func claimsInOtherShapesHold() throws {
    #expect(try Self.read(#"{"aud":["x","carillon-publish"],"apps":"a","exp":7.9,"nbf":1.1}"#).expiration == 7)
    #expect(try Self.read(#"{"aud":"carillon-publish","apps":"a","exp":7,"nbf":1.1}"#).notBefore == 2)
  }

  @Test func noTokenHoldsButTheOneThatWasSigned() throws {
    let token = PublisherToken(applications: ["a.b"], publisher: "shop", expiration: 2_000_000_000)
    let corpus = [
      token.sign(key: KeyRing.Key(Self.key), now: 5), token.sign(key: KeyRing.Key(Array("another".utf8)), now: 5),
      Self.sign(#"{"aud":"carillon-publish"}"#),
      Self.sign("[]"), "eyJhbGciOiJub25lIn0.e30.",
    ].map { Array($0.utf8) }
    let key = SignatureKey(secret: KeyRing.Key(Self.key))
    let failures = Fuzz("publisher tokens", corpus: corpus, tokens: [".", "=", "-", "_", "e30", "eyJhbGciOiJub25lIn0"]).run { bytes, _ in
      let found = SignedToken(verifying: String(decoding: bytes, as: UTF8.self), with: [key]).flatMap { try? PublisherToken($0) }
      return found == nil || found == token ? nil : "\(String(describing: found)) was never signed"
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
