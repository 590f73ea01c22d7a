import Cryptography
import Foundation
import JSON
import TestSupport
import Testing
import Worker

@testable import Command

/// `carillon token`.
@Suite struct TokenTests {
  @Test func aCredentialIsSignedWithTheKeyOfTheFile() async throws {
    try await CarillonCommand.with { carillon in
      let path = carillon.folder.appendingPathComponent("cluster.key").path
      #expect(try await carillon.run(["token", "key", path]).status == 0)
      let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
      #expect(mode == 0o600)
      let again = try await carillon.run(["token", "key", path])
      #expect(again.status == 2 && again.errors.contains("File exists"))

      let token = String(repeating: "AB", count: 32)
      let result = try await carillon.run([
        "token", "--token", token, "--app", "com.example", "--user", "ada", "--expires", "1h", "--key", path,
      ])
      #expect(result.status == 0, "it said: \(result.errors)")
      let text = try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
      let bytes = try #require(Base64.decode(url: text))
      let credential = try #require(result.lines.first)
      let payload = try #require(
        CompactSignature.verify(credential, with: [SignatureKey(secret: KeyRing.Key(bytes))]) { _, _ in true }?.payload)
      let claims = try payload.withUnsafeBytes { try JSONValue(parsing: $0) }
      #expect(claims["sub"]?.stringValue == token.lowercased())
      #expect(claims["app"]?.stringValue == "com.example")
      #expect(claims["user"]?.stringValue == "ada")
      let issued = try #require(claims["iat"]?.integerValue)
      let expires = try #require(claims["exp"]?.integerValue)
      #expect(expires - issued == 3600)
      #expect(!result.output.contains(text) && !result.errors.contains(text))
    }
  }

  @Test func aFileThatHoldsNoKeyIsRefused() async throws {
    try await TestFolder.with { folder in
      let path = try folder.write("short.key", "c2hvcnQ\n")
      let refusal = try await Typed.refusal(["token", "--token", String(repeating: "0", count: 64), "--app", "a", "--key", path])
      #expect(refusal.code == .wrongUsage)
      #expect(refusal.text.contains("holds no key") && !refusal.text.contains("c2hvcnQ"))
    }
  }
}
