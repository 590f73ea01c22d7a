import Foundation
import TestSupport
import Testing

/// Files that are read at start.
@Suite struct InputFileTests {
  static let token = String(repeating: "0", count: 64)
  static let credential = ["token", "--token", token, "--app", "com.example", "--key"]
  static let device = ["device", "--devices", "ws://127.0.0.1:9", "--token", token, "--app", "com.example"]
  static let worker = ["--kafka", "127.0.0.1:9", "--redis", "127.0.0.1:9"]

  private func fifo(_ carillon: CarillonCommand) throws -> String {
    let path = carillon.folder.appendingPathComponent("fifo").path
    try #require(mkfifo(path, 0o600) == 0)
    return path
  }

  /// What is typed before a path, and the flag that an error must name.
  static let readers: [(arguments: [String], flag: String)] = [
    (["fan-out"] + worker + ["--key-file"], "--key-file"), (["up", "--key-file"], "--key-file"), (credential, "--key"),
    (["transform"] + worker + ["--config"], "--config"), (device + ["--credential-file"], "--credential-file"),
    (device + ["--categories"], "--categories"),
  ]

  @Test(arguments: readers) func onlyARegularFileIsRead(arguments: [String], flag: String) async throws {
    try await CarillonCommand.with { carillon in
      for (path, kind) in [(try fifo(carillon), "a FIFO"), (carillon.folder.path, "a directory"), ("/dev/zero", "a device")] {
        let result = try await carillon.run(arguments + [path])
        #expect(result.status == 2, "\(kind): it said: \(result.errors)")
        #expect(result.errors.contains("\(flag): \(path) is \(kind): it must be a regular file"), "it said: \(result.errors)")
      }
    }
  }

  @Test func theErrorNamesWhereThePathWasGiven() async throws {
    try await CarillonCommand.with { carillon in
      let line = Array(Self.credential.dropLast())
      let variable = try await carillon.run(line, environment: ["CARILLON_TOKEN_KEY": "/dev/zero"])
      #expect(variable.status == 2 && variable.errors.contains("CARILLON_TOKEN_KEY (token.key): /dev/zero is a device"))
      let file = try carillon.file("carillon.conf", "\u{FEFF}# written with an editor that marks its files\ntoken.key = /dev/zero\n")
      let configured = try await carillon.run(line + ["--config", file])
      #expect(configured.status == 2 && configured.errors.contains("\(file):2 (token.key): /dev/zero is a device"))
    }
  }

  @Test func aByteOrderMarkOfAConfigurationFileIsPassedOver() async throws {
    try await CarillonCommand.with { carillon in
      let file = try carillon.file("carillon.conf", "\u{FEFF}fanout.window = 0\n")
      let result = try await carillon.run(["events", "--config", file])
      #expect(result.status == 2 && result.errors.contains("\(file):1 (fanout.window): '0' is not allowed"), "it said: \(result.errors)")
    }
  }

  @Test func aLargeFileIsRefused() async throws {
    try await CarillonCommand.with { carillon in
      let file = try carillon.file("large", String(repeating: "A", count: 4097))
      let result = try await carillon.run(Self.credential + [file])
      #expect(result.status == 2 && result.errors.contains("--key: \(file) is too large: it may have 4KiB"), "it said: \(result.errors)")
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
      let path = try fifo(carillon)
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
}
