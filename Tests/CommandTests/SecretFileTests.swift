import Cryptography
import Foundation
import TestSupport
import Testing
import Worker

@testable import Command

/// Files of keys, and files that are read again.
@Suite struct SecretFileTests {
  private static func line(_ byte: UInt8, count: Int = 32) -> String {
    [UInt8](repeating: byte, count: count).withUnsafeBytes { Base64.encode(url: $0) }
  }

  private static func ids(_ bytes: UInt8...) -> [String] { bytes.map { KeyRing.Key([UInt8](repeating: $0, count: 32)).id } }

  private static func keys(_ text: String) throws -> [String] {
    try TestFolder.with { folder in
      let path = try folder.write("cluster.key", text)
      return try SecretFile.keys(InputFile(path: path, givenAt: "--key-file", limit: SecretFile.fileBytes)).keys.map(\.id)
    }
  }

  @Test func eachLineIsAKey() throws {
    for text in ["\(Self.line(1))\n\(Self.line(2))\n", "\n \(Self.line(1)) \r\n\n\(Self.line(2))"] {
      #expect(try Self.keys(text) == Self.ids(1, 2))
    }
    #expect(try Self.keys((1...8).map { Self.line($0) }.joined(separator: "\n")).count == 8)
  }

  @Test(arguments: [
    ("", "holds no key"), ("\n \n", "holds no key"), (line(1, count: 31), "at least 32 bytes"),
    ("\(line(1))\nnonsense\n", "one of its lines"),
    ("\(line(1))\n\(line(2))\n\(line(1))", "one key twice"), ((1...9).map { line($0) }.joined(separator: "\n"), "9 keys: it may have 8"),
    ("\(line(1)) \(line(2))", "holds no key"), ("\(line(1))\r\(line(2))", "holds no key"),
  ])
  func whatIsNoKeyIsRefusedAndNotShown(_ text: String, _ rule: String) {
    let failure = #expect(throws: Failure.self) { try Self.keys(text) }
    let said = failure.map { "\($0)" } ?? ""
    #expect(said.contains(rule), "it says: \(said)")
    for line in text.split(whereSeparator: \.isWhitespace) { #expect(!said.contains(line)) }
  }

  /// As `openssl ec -pubout` and `openssl pkey -pubout` write them.
  private static let publicKeys = [
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7\n6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==",
    "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
  ].map { "-----BEGIN PUBLIC KEY-----\n\($0)\n-----END PUBLIC KEY-----\n" }

  @Test func aFileOfThePublishersHasAnyNumberOfKeysOfOneKind() throws {
    try TestFolder.with { folder in
      func count(_ text: String) throws -> Int {
        let path = try folder.write("publishers.key", text)
        let values = try Typed.values(["ingress", "--kafka", "127.0.0.1:9", "--redis", "127.0.0.1:9", "--key-file", path])
        let keys = try #require(try IngressOptions.keys(values, .silent)).content.value
        #expect(Set(keys.map(\.id)).count == keys.count)
        return keys.count
      }
      for text in [Self.publicKeys.joined(), "\n" + Self.publicKeys.joined(separator: "\n"), "\(Self.line(1))\n\(Self.line(2))"] {
        let found = try count(text)
        #expect(found == 2)
      }
      for text in [
        Self.line(1) + "\n" + Self.publicKeys[0], Self.publicKeys[0] + Self.line(1), String(Self.publicKeys[0].dropLast(10)),
        Self.publicKeys[0] + Self.publicKeys[1].replacing("PUBLIC", with: "PRIVATE"), "-----BEGIN",
      ] {
        #expect(throws: Failure.self, "\(text)") { _ = try count(text) }
      }
    }
  }

  @Test func aFileIsReadAgainWhenItHasChangedAndAWrongOneLeavesTheFormerInForce() async throws {
    try await TestFolder.with { folder in
      let path = try folder.write("cluster.key", Self.line(1))
      let values = try Typed.values(["fan-out", "--kafka", "127.0.0.1:9", "--redis", "127.0.0.1:9", "--key-file", path])
      let file = open(folder.path + "/log", O_WRONLY | O_CREAT, 0o600)
      let log = LogWriter(descriptor: file)
      defer { close(file) }
      func told() -> String { (try? String(contentsOfFile: folder.path + "/log", encoding: .utf8)) ?? "" }
      let keys = try #require(try FanOutOptions.keys(values, Logger(log, component: "test")))
      let metrics = MetricRegistry()
      let watch = try #require(FileWatch([keys.files], metrics))
      func shows(_ number: Int) -> Bool { metrics.text.contains("carillon_changed_files_refused{files=\"keys\"} \(number)\n") }
      func present() -> [String] { keys.content.value.keys.map(\.id) }
      #expect(present() == Self.ids(1) && shows(0))
      await watch.start()
      try folder.write("cluster.key", "\(Self.line(1))\n\(Self.line(2))\n")
      await eventually("both hold") { present() == Self.ids(1, 2) }
      try folder.write("cluster.key", "")
      await eventually("it is said") { told().contains("what it held before stays in force") && shows(1) }
      #expect(present() == Self.ids(1, 2) && told().contains("holds no key") && !told().contains(Self.line(1)))
      try folder.write("cluster.key", "\(Self.line(2))\n\(Self.line(1))\n")
      await eventually("the new one signs") { present() == Self.ids(2, 1) && shows(0) }
      await watch.close()
      log.close()
    }
  }
}
