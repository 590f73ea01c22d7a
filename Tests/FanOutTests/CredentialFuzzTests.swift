import TestSupport
import Testing
import Worker

@testable import FanOut

@Suite struct CredentialFuzzTests {
  private static let key: [UInt8] = Array("0123456789abcdef0123456789abcdef".utf8)

  @Test func noCredentialHoldsButTheOneThatWasSigned() {
    let credential = Credential(device: "aa", application: "a.b", user: "ada", expiration: 2_000_000_000)
    let corpus = [
      credential.sign(key: Self.key, now: 5),
      Credential(device: "aa", application: "a.b", user: nil, expiration: 1).sign(key: Self.key, now: 5),
      credential.sign(key: Array("another".utf8), now: 5),
    ].map { Array($0.utf8) }
    let failures = Fuzz("credentials", corpus: corpus, tokens: [".", "=", "-", "_", "e30", "eyJhbGciOiJub25lIn0"]).run { bytes, _ in
      let found = try? Credential(verifying: String(decoding: bytes, as: UTF8.self), key: Self.key, now: 1_000)
      return found == nil || found == credential ? nil : "\(String(describing: found)) was never signed"
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func whatRedisKeepsIsReadAsItWasWritten() {
    let corpus = [
      Presence(partition: 3, generation: .max).bytes, Owner(user: 1, since: 2, application: 3).bytes,
      Marker(offset: 5, timestamp: -1).bytes,
    ]
    let failures = Fuzz("fields in Redis", corpus: corpus).run { bytes, _ in
      let array = Array(bytes)
      if let presence = Presence(array), presence.bytes != array { return "another presence" }
      if let owner = Owner(array), owner.bytes != array { return "another owner" }
      if let marker = Marker(bytes), marker.bytes != array { return "another marker" }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
