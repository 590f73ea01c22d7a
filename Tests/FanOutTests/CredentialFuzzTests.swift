import Cryptography
import Notifications
import TestSupport
import Testing
import Worker

@testable import FanOut

@Suite struct CredentialFuzzTests {
  private static let key = KeyRing.Key(Array("0123456789abcdef0123456789abcdef".utf8))

  @Test func noCredentialHoldsButTheOneThatWasSigned() {
    let credential = Credential(device: "aa", application: "a.b", user: "ada", expiration: 2_000_000_000)
    let corpus = [
      credential.sign(key: Self.key, now: 5),
      Credential(device: "aa", application: "a.b", user: nil, expiration: 1).sign(key: Self.key, now: 5),
      credential.sign(key: KeyRing.Key(Array("another".utf8)), now: 5),
    ].map { Array($0.utf8) }
    let failures = Fuzz("credentials", corpus: corpus, tokens: [".", "=", "-", "_", "e30", "eyJhbGciOiJub25lIn0"]).run { bytes, _ in
      let token = SignedToken(verifying: String(decoding: bytes, as: UTF8.self), with: [SignatureKey(secret: Self.key)])
      let found = token.flatMap { try? Credential($0, now: 1_000) }
      return found == nil || found == credential ? nil : "\(String(describing: found)) was never signed"
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
