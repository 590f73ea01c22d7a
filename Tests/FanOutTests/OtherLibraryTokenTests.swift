import Cryptography
import Notifications
import Testing
import Worker

@testable import FanOut

/// Credentials as the libraries of other languages write them (RFC 7519), and what nobody may write.
@Suite struct OtherLibraryTokenTests {
  private static let key: [UInt8] = Array("0123456789abcdef0123456789abcdef".utf8)
  private static let device = String(repeating: "ab", count: 32)
  private static let claims = #"{"sub":"\#(device)","app":"com.example.shop","user":"ada","iat":1700000000,"exp":4000000000}"#

  private static func url(_ text: String) -> String { Array(text.utf8).withUnsafeBytes { Base64.encode(url: $0) } }

  /// A token whose code is right for its header and its claims, whatever they say.
  private static func signed(_ header: String, _ claims: String = claims) -> String {
    let text = url(header) + "." + url(claims)
    let code = Array(text.utf8).withUnsafeBytes { HMACKey(key).authenticationCode($0) }
    return text + "." + code.withUnsafeBytes { Base64.encode(url: $0) }
  }

  private static func read(_ token: String, now: Int64 = 1_800_000_000) throws(CredentialError) -> Credential {
    guard let claims = SignedToken(verifying: token, with: [SignatureKey(secret: KeyRing.Key(key))]) else { throw .notSigned }
    return try Credential(claims, now: now)
  }

  private static func failure(_ token: String, now: Int64 = 1_800_000_000) -> CredentialError? {
    do throws(CredentialError) {
      _ = try read(token, now: now)
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [
    #"{"alg":"HS256","typ":"JWT"}"#, #"{"typ":"JWT","alg":"HS256"}"#, #"{"alg":"HS256"}"#, #"{ "alg": "HS256", "typ": "JWT" }"#,
    "{\n\t\"typ\" : \"JWT\",\r\n\t\"alg\" : \"HS256\"\n}", #"{"alg":"HS256","typ":"jwt"}"#, #"{"alg":"HS256","kid":"2026-1","typ":"JWT"}"#,
    #"{"alg":"HS256","kid":"../../key","jku":"http://x/"}"#, #"{"\u0061lg":"HS256"}"#,
  ])
  func `a header counts by its members, however it is written`(_ header: String) throws {
    let credential = try Self.read(Self.signed(header))
    #expect(credential == Credential(device: Self.device, application: "com.example.shop", user: "ada", expiration: 4_000_000_000))
  }

  @Test(arguments: [
    #"{"alg":"none"}"#, #"{"alg":"None","typ":"JWT"}"#, #"{"alg":"hs256"}"#, #"{"alg":"HS384"}"#, #"{"alg":"HS512"}"#, #"{"alg":"RS256"}"#,
    #"{"alg":"ES256"}"#, #"{"alg":"HS256 "}"#, #"{"alg":["HS256"]}"#, #"{"alg":null}"#, #"{"typ":"JWT"}"#, "{}", "", "HS256", #""HS256""#,
    #"["HS256"]"#, #"{"alg":"HS256""#, #"{"alg":"HS256"}{}"#,
    #"{"alg":"HS256","crit":["exp"]}"#, #"{"alg":"HS256","crit":[]}"#, #"{"alg":"HS256","crit":null}"#,
    #"{"alg":"HS256","alg":"HS256"}"#, #"{"alg":"none","alg":"HS256"}"#, #"{"alg":"none","\u0061lg":"HS256"}"#,
    #"{"alg":"HS256","kid":"1","kid":"2"}"#,
  ])
  func `a header that asks for anything else is refused though its code is right`(_ header: String) {
    #expect(Self.failure(Self.signed(header)) == .notSigned)
  }

  @Test(arguments: ["none", "HS256"])
  func `a token without a code of the key is refused`(_ algorithm: String) {
    let text = Self.url(#"{"alg":"\#(algorithm)","typ":"JWT"}"#) + "." + Self.url(Self.claims)
    for end in ["", ".", "." + Self.url("x"), "." + Self.url(String(repeating: "x", count: 32))] {
      #expect(Self.failure(text + end) == .notSigned)
    }
  }

  @Test(arguments: [
    claims.replacing(#""user":"ada""#, with: #""user":"ada","user":"eve""#), claims.replacing(#""exp""#, with: #""exp":1,"exp""#),
    claims.replacing(#""sub""#, with: #""s\u0075b":"x","sub""#), claims.replacing(#""app""#, with: #""more":1,"more":1,"app""#),
    "[]", "", claims + claims,
  ])
  func `claims in which a member stands twice are refused`(_ claims: String) {
    #expect(Self.failure(Self.signed(#"{"alg":"HS256"}"#, claims)) == .notSigned)
  }

  @Test func `claims may have spaces, any order, and members of others`() throws {
    let claims = #"{ "exp" : 4e9 , "more" : {"a":[1,1]}, "user": "ada", "app": "com.example.shop", "sub": "\#(Self.device)" }"#
    let credential = try Self.read(Self.signed(#"{"alg":"HS256"}"#, claims))
    #expect(credential.user == "ada" && credential.expiration == 4_000_000_000)
  }

  @Test func `a user that is null or absent is nobody, and the token has either case`() throws {
    for user in [#""user":null,"#, ""] {
      let claims = Self.claims.replacing(#""user":"ada","#, with: user).replacing(Self.device, with: Self.device.uppercased())
      let credential = try Self.read(Self.signed(#"{"alg":"HS256"}"#, claims))
      #expect(credential.user == nil && credential.device == Self.device)
    }
  }

  /// Never longer than the signer meant: what is left of a second does not count.
  @Test func `fractions of seconds make a credential hold shorter`() throws {
    func token(_ times: String) -> String {
      Self.signed(#"{"alg":"HS256"}"#, #"{"sub":"\#(Self.device)","app":"a.b",\#(times)}"#)
    }
    let token = token(#""nbf":100.25,"iat":99.75,"exp":200.75"#)
    #expect(Self.failure(token, now: 100) == .notYetValid && Self.failure(token, now: 101) == nil)
    #expect(Self.failure(token, now: 199) == nil && Self.failure(token, now: 200) == .expired)
    #expect(try Self.read(token, now: 101).expiration == 200)
  }

  @Test(arguments: ["1e300", "-1e300", "9223372036854775808", "1e19", #""4000000000""#, "null", "true"])
  func `a time that is no number of seconds is refused`(_ time: String) {
    let claims = Self.claims.replacing("4000000000", with: time)
    #expect(Self.failure(Self.signed(#"{"alg":"HS256"}"#, claims)) == .claim("exp", "must be a number of seconds since 1970"))
  }

  @Test func `a token that is too long is refused unread`() {
    func token(_ count: Int) -> String {
      Self.signed(#"{"alg":"HS256"}"#, Self.claims.replacing("}", with: #","more":"\#(String(repeating: "x", count: count))"}"#))
    }
    #expect(token(5_800).utf8.count <= 8_192 && Self.failure(token(5_800)) == nil)
    #expect(token(6_200).utf8.count > 8_192 && Self.failure(token(6_200)) == .notSigned)
  }
}
