import Cryptography
import EventLoop
import HTTP
import JSON
import Notifications
import TestSupport
import Testing
import Worker

@testable import FanOut

/// Who is let in, for how long, and what the others are told, through a lane's sockets.
@Suite(.serialized) struct CredentialTests {
  private static let key = KeyRing.Key(Array("0123456789abcdef0123456789abcdef".utf8))
  private static let token = String(repeating: "ab", count: 32)

  private static func sign(_ claims: String, key: KeyRing.Key = key) -> String {
    Array(claims.utf8).withUnsafeBytes { CompactSignature.sign($0, with: key) }
  }

  /// A token with the claims that ada's device needs, as far as `changes` does not say otherwise.
  private static func ada(_ changes: [String: String?]) -> String {
    var claims: [String: String?] = ["sub": #""\#(token)""#, "app": #""com.example.shop""#, "user": #""ada""#, "exp": "4000000000"]
    claims.merge(changes) { $1 }
    return sign("{" + claims.compactMap { name, value in value.map { #""\#(name)":\#($0)"# } }.joined(separator: ",") + "}")
  }

  /// What a hello of ada's has as its credential, and words of what it is told; none: it is welcomed.
  private static let cases: [(credential: String?, words: [String])] = [
    (nil, ["no credential was given", "hello.credential", "carillon token"]), ("nonsense", ["not signed"]),
    (sign("{}", key: KeyRing.Key(Array("another key, as long as it must be".utf8))), ["not signed"]),
    (ada(["user": "5"]), ["claim user", "string"]),
    (ada(["user": "null"]), ["another user"]), (ada(["sub": "[]"]), ["claim sub", "string"]), (ada(["app": nil]), ["claim app"]),
    (ada(["exp": #""4000000000""#]), ["claim exp", "number"]), (ada(["exp": nil]), ["claim exp"]), (ada(["exp": "1"]), ["expired"]),
    (ada(["aud": #""carillon-publish""#]), ["claim aud", "publisher's token"]), (ada(["aud": #"["x","carillon-publish"]"#]), ["claim aud"]),
    (ada(["aud": #""carillon""#]), []), (ada(["nbf": "3999999999"]), ["nbf", "wait"]), (ada(["nbf": "true"]), ["claim nbf", "number"]),
    (ada(["iat": #""now""#]), ["claim iat", "number"]), (ada(["user": nil]), ["another user"]),
    (ada(["user": #""bob""#]), ["another user"]),
    (ada(["app": #""com.example""#]), ["another application"]), (ada(["sub": #""cd""#]), ["another device"]), (ada([:]), []),
    (ada(["nbf": "1", "iat": "1"]), []), (ada(["nbf": "1.5", "iat": "1.5", "exp": "4000000000.5"]), []),
    (ada(["sub": #""\#(token.uppercased())""#]), []), (ada(["exp": "1e300"]), ["claim exp", "number"]),
  ]

  @Test func aCredentialThatDoesNotHoldIsRefusedWithTheReason() async throws {
    try await LaneFixture.with({ ($0.admission, $0.keys) = (.credential, InForce(KeyRing([Self.key]))) }) { lane in
      for (credential, words) in Self.cases {
        let device = try await lane.connect(Self.token, user: "ada", credential: credential)
        await lane.eventually("an answer") { $0.end(of: device) != nil || !$0.frames("welcome", at: device).isEmpty }
        let end = await lane.end(of: device)
        guard !words.isEmpty else {
          #expect(end == nil, "\(credential ?? "")")
          continue
        }
        #expect(end?.code.rawValue == 4003, "\(words)")
        for word in words { #expect(end?.reason.contains(word) == true, "'\(end?.reason ?? "")' does not say '\(word)'") }
      }
    }
  }

  /// To Kafka and Redis they are two people.
  @Test func `a credential for a name that only looks alike lets nobody in`() async throws {
    try await LaneFixture.with({ ($0.admission, $0.keys) = (.credential, InForce(KeyRing([Self.key]))) }) { lane in
      for (claim, user) in [("\u{212A}im", "Kim"), ("Kim", "\u{212A}im"), ("Jose\u{301}", "José"), ("José", "Jose\u{301}")] {
        let device = try await lane.connect(Self.token, user: user, credential: Self.ada(["user": #""\#(claim)""#]))
        await lane.eventually("it is refused") { $0.end(of: device)?.code.rawValue == 4003 }
        #expect(await lane.end(of: device)?.reason.contains("another user") == true)
      }
      #expect(await lane.count("welcome") == 0)
      let device = try await lane.connect(Self.token, user: "\u{212A}im", credential: Self.ada(["user": #""\u212aim""#]))
      await lane.eventually("the same bytes are welcomed") { !$0.frames("welcome", at: device).isEmpty }
    }
  }

  /// Passed over, such a claim would make it a credential of a device that is nobody's.
  @Test func aUserThatIsNoTextIsNotNobody() async throws {
    try await LaneFixture.with({ ($0.admission, $0.keys) = (.credential, InForce(KeyRing([Self.key]))) }) { lane in
      for user in ["5", "false", #"{"id":"ada"}"#] {
        let device = try await lane.connect(Self.token, credential: Self.ada(["user": user]))
        await lane.eventually("it is refused") { $0.end(of: device)?.code.rawValue == 4003 }
      }
      #expect(await lane.count("welcome") == 0)
      // A library that writes what is absent writes null.
      _ = try await lane.connect(Self.token, credential: Self.ada(["user": "null"]))
      await lane.eventually("a device of nobody's is welcomed") { $0.count("welcome") == 1 }
    }
  }

  /// A key is replaced in three steps; nobody who is connected notices.
  @Test func `two keys hold at once, and a device that is connected stays when its key leaves`() async throws {
    let next = KeyRing.Key(Array("another key, as long as it must be".utf8))
    let keys = InForce(KeyRing([Self.key]))
    try await LaneFixture.with({ ($0.admission, $0.keys) = (.credential, keys) }) { lane in
      func enter(_ key: KeyRing.Key) async throws -> (device: Int, isIn: Bool) {
        let token = LaneFixture.token()
        let credential = Credential(device: token, application: "com.example.shop", user: nil, expiration: 4_000_000_000)
        let device = try await lane.connect(token, credential: credential.sign(key: key, now: 1))
        await lane.eventually("an answer") { $0.end(of: device) != nil || !$0.frames("welcome", at: device).isEmpty }
        return (device, await lane.end(of: device) == nil)
      }
      let first = try await enter(Self.key)
      #expect(first.isIn)
      let early = try await enter(next)
      #expect(!early.isIn)
      for ring in [[Self.key, next], [next, Self.key]] {
        keys.replace(with: KeyRing(ring))
        let former = try await enter(Self.key)
        #expect(former.isIn)
        let latter = try await enter(next)
        #expect(latter.isIn)
      }
      keys.replace(with: KeyRing([next]))
      let late = try await enter(Self.key)
      #expect(!late.isIn)
      #expect(await lane.end(of: late.device)?.reason.contains("not signed with a key of this cluster") == true)
      let last = try await enter(next)
      #expect(last.isIn)
      #expect(await lane.end(of: first.device) == nil)
      for (key, count) in [(Self.key, 3), (next, 3)] {
        #expect(lane.metrics.text.contains("carillon_fanout_credentials_total{key=\"\(key.id)\"} \(count)\n"), "\(lane.metrics.text)")
      }
    }
  }

  @Test func aSessionEndsWithItsCredential() async throws {
    try await LaneFixture.with({ ($0.admission, $0.keys) = (.credential, InForce(KeyRing([Self.key]))) }) { lane in
      let lasting = try await lane.connect(Self.token, user: "ada", credential: Self.ada([:]))
      await lane.eventually("the lasting one is welcomed") { $0.count("welcome") == 1 }
      var (device, end) = (0, Int64(0))
      // Its credential may end before it is looked at.
      while await lane.count("welcome") < 2 {
        end = WallClock.seconds() + 3
        let token = LaneFixture.token()
        let credential = Credential(device: token, application: "com.example.shop", user: nil, expiration: end)
        let next = try await lane.connect(token, credential: credential.sign(key: Self.key, now: end - 3))
        await lane.eventually("an answer") { $0.end(of: next) != nil || !$0.frames("welcome", at: next).isEmpty }
        device = next
      }
      let ending = device
      await lane.eventually("it is closed") { $0.end(of: ending)?.code.rawValue == 4018 }
      #expect(WallClock.seconds() >= end)
      let goaway = await lane.frames("goaway", at: device)
      #expect(goaway.count == 1 && goaway.first?["reason"] == "credentialExpired")
      #expect((0...300_000).contains(goaway.first?["reconnectAfterMs"]?.integerValue ?? -1))
      #expect(await lane.end(of: lasting) == nil)
    }
  }
}
