import Foundation
import TestSupport
import Testing
import Worker

@testable import Command

/// Files that are read at start.
@Suite struct InputFileTests {
  static let token = String(repeating: "0", count: 64)
  static let credential = ["token", "--token", token, "--app", "com.example", "--key"]
  static let device = ["device", "--devices", "ws://127.0.0.1:9", "--token", token, "--app", "com.example"]
  static let worker = ["--kafka", "127.0.0.1:9", "--redis", "127.0.0.1:9"]

  /// What is typed before a path, the flag that an error must name, and what reads the file.
  static let readers: [(arguments: [String], flag: String, read: @Sendable ([String]) async throws -> Void)] = [
    (["fan-out"] + worker + ["--key-file"], "--key-file", { _ = try FanOutOptions.keys(Typed.values($0), .silent) }),
    (["up", "--key-file"], "--key-file", { _ = try FanOutOptions.keys(Typed.values($0), .silent) }),
    (credential, "--key", { _ = try await command($0) }),
    (["transform"] + worker + ["--config"], "--config", { _ = try Typed.parse($0) }),
    (device + ["--credential-file"], "--credential-file", { _ = try DeviceSettings.configuration(Typed.values($0)) }),
    (device + ["--categories"], "--categories", { _ = try DeviceSettings.configuration(Typed.values($0)) }),
  ]

  /// Carries out a line that must be refused, and throws why.
  private static func command(_ line: [String]) async throws {
    let refusal = try await Typed.refusal(line)
    throw UsageError(.unreadableFile, refusal.text)
  }

  @Test(arguments: readers.indices) func onlyARegularFileIsRead(number: Int) async throws {
    let reader = Self.readers[number]
    try await TestFolder.with { folder in
      let fifo = folder.path + "/fifo"
      try #require(mkfifo(fifo, 0o600) == 0)
      for (path, kind) in [(fifo, "a FIFO"), (folder.path, "a directory"), ("/dev/zero", "a device")] {
        let error = await #expect(throws: UsageError.self) { try await reader.read(reader.arguments + [path]) }
        let text = error?.description ?? ""
        #expect(text.contains("\(reader.flag): \(path) is \(kind): it must be a regular file"), "it says: \(text)")
      }
    }
  }

  @Test func theErrorNamesWhereThePathWasGiven() async throws {
    try await TestFolder.with { folder in
      let line = Array(Self.credential.dropLast())
      let variable = try await Typed.refusal(line, ["CARILLON_TOKEN_KEY": "/dev/zero"])
      #expect(variable.code == .wrongUsage && variable.text.contains("CARILLON_TOKEN_KEY (token.key): /dev/zero is a device"))
      let file = try folder.write("carillon.conf", "\u{FEFF}# written with an editor that marks its files\ntoken.key = /dev/zero\n")
      let configured = try await Typed.refusal(line + ["--config", file])
      #expect(configured.code == .wrongUsage && configured.text.contains("\(file):2 (token.key): /dev/zero is a device"))
    }
  }

  @Test func aByteOrderMarkOfAConfigurationFileIsPassedOver() async throws {
    try await TestFolder.with { folder in
      let file = try folder.write("carillon.conf", "\u{FEFF}fanout.window = 0\n")
      let refusal = try await Typed.refusal(["events", "--config", file])
      #expect(
        refusal.code == .wrongUsage && refusal.text.contains("\(file):1 (fanout.window): '0' is not allowed"), "it says: \(refusal.text)")
    }
  }

  @Test func aLargeFileIsRefused() async throws {
    try await TestFolder.with { folder in
      let file = try folder.write("large", String(repeating: "A", count: 4097))
      let refusal = try await Typed.refusal(Self.credential + [file])
      #expect(
        refusal.code == .wrongUsage && refusal.text.contains("--key: \(file) is too large: it may have 4KiB"), "it says: \(refusal.text)")
    }
  }

  @Test func aKeyThatOthersMayReadEarnsAWarning() async throws {
    try await CarillonCommand.with { carillon in
      let path = carillon.folder.appendingPathComponent("cluster.key").path
      #expect(try await carillon.run(["token", "key", path]).status == 0)
      let quiet = try await carillon.run(Self.credential + [path])
      #expect(quiet.status == 0 && quiet.errors.isEmpty, "it said: \(quiet.errors)")
      chmod(path, 0o640)
      let warned = try await carillon.run(Self.credential + [path])
      #expect(warned.status == 0 && warned.lines.count == 1)
      #expect(
        warned.errors.contains("others may read the cluster's key") && warned.errors.contains("chmod 600 \(path)"),
        "it said: \(warned.errors)")
      let fanOut = try carillon.start(["fan-out", "--listen", "127.0.0.1:0", "--key-file", path] + Self.worker)
      try await fanOut.untilErrors(contain: "others may read the cluster's key")
      try await fanOut.stop()
    }
  }

  @Test func aPayloadMayComeThroughAPipe() async throws {
    try await CarillonCommand.with { carillon in
      let path = carillon.folder.appendingPathComponent("fifo").path
      try #require(mkfifo(path, 0o600) == 0)
      let publish = try carillon.start([
        "publish", "--kafka", "127.0.0.1:9", "--target", "user:ada", "--app", "com.example", "--payload", path,
      ])
      let file = try #require(FileHandle(forWritingAtPath: path))
      try file.write(contentsOf: Data(#"{"aps":{"alert":7}}"#.utf8))
      try file.close()
      // Refused by its rules, so it was read.
      let result = try await publish.result()
      #expect(result.status == 2 && result.errors.contains("the cluster would reject this request"), "it said: \(result.errors)")
    }
  }

  /// `/dev/zero` never ends a line.
  @Test func `a line that is too long is told before its end has come`() throws {
    var reader = try LineReader(path: "/dev/zero")
    var told: [Int] = []
    for _ in 0..<30 { _ = try reader.next { number, line in told.append(line == nil ? number : -1) } }
    #expect(told == [1])
    try TestFolder.with { folder in
      let long = String(repeating: "x", count: 3 * LineReader.longestLine)
      var reader = try LineReader(path: try folder.write("lines", "one\n\(long)\nthree\n\(long)"))
      var lines: [String] = []
      while try reader.next({ lines.append("\($0) \($1.map { String(decoding: $0, as: UTF8.self) } ?? "too long")") }) {}
      #expect(lines == ["1 one", "2 too long", "3 three", "4 too long"])
    }
  }
}
