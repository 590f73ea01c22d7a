import EventLoop
import Foundation
import JSON
import TestSupport
import Testing
import Web
import Worker

@testable import Command

/// The files for browsers: at a running worker, and in a folder of a team's own.
@Suite struct WebTests {
  /// The status and the body of a GET.
  private func get(_ path: String, _ port: Int) throws -> (status: Int?, body: String) {
    let socket = try RawSocket(port: port)
    try socket.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n")
    let text = String(decoding: try socket.readToEnd(), as: UTF8.self)
    let body = text.firstRange(of: "\r\n\r\n").map { String(text[$0.upperBound...]) }
    return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) }, body ?? "")
  }

  @Test func aClusterForTrialsServesThePageThatItNames() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      let places = try JSONValue(parsing: try await up.firstLine())
      let page = try #require(places["page"]?.stringValue.flatMap { URL(string: $0) })
      let port = try #require(page.port)
      try await withTaskExecutorPreference(BlockingThreads.shared) {
        let answer = try get(page.path() + "index.html", port)
        #expect(answer.status == 200 && answer.body.contains("/web/\(WebFiles.embedded.digest)/"))
        #expect(try get(page.path(), port).body == answer.body)
        let module = try get("/web/\(WebFiles.embedded.digest)/carillon.js", port)
        #expect(module.status == 200 && module.body.contains("export"))
        let configuration = try JSONValue(parsing: try get("/device/config.json", port).body)
        #expect(configuration["origins"]?[0]?.stringValue == "http://127.0.0.1:\(port)" && configuration["credential"]?.text == "false")
      }
      try await up.stop()
      let without = try carillon.start(CarillonCommand.up + ["--no-web"])
      let places2 = try JSONValue(parsing: try await without.firstLine())
      #expect(places2["page"]?.text == "null")
      let bare = try #require(places2["devices"]?.stringValue.flatMap { URL(string: $0)?.port })
      let status = try await withTaskExecutorPreference(BlockingThreads.shared) { try get("/device/", bare).status }
      #expect(status == 404)
      try await without.stop()
    }
  }

  @Test func aTeamsOwnWebServerGetsAllFilesAndWhereTheClusterIs() async throws {
    try await CarillonCommand.with { carillon in
      let folder = carillon.folder.appendingPathComponent("public/carillon")
      let flags = ["web", "--out", folder.path]
      let cluster = ["--devices", "wss://push.example.com/v1/device", "--media-url", "https://media.example.com/x"]
      let written = try await carillon.run(flags + cluster)
      #expect(written.status == 0, "it said: \(written.errors)")
      let files = WebFiles.embedded.all
      #expect(written.lines == files.map { "\(folder.path)/\($0.path)" } + ["\(folder.path)/device/config.json"])
      #expect(Set(try FileManager.default.subpathsOfDirectory(atPath: folder.path)).isSuperset(of: files.map(\.path)))
      for file in files {
        let bytes = try Data(contentsOf: folder.appendingPathComponent(file.path))
        #expect(file.bytes.withUnsafeBytes { Array($0) } == Array(bytes), "\(file.path)")
      }
      let configuration = folder.appendingPathComponent("device/config.json")
      let json = try JSONValue(parsing: String(contentsOf: configuration, encoding: .utf8))
      #expect(json["devices"]?.stringValue == "wss://push.example.com/v1/device" && json["credential"]?.text == "true")
      #expect(json["media"]?.stringValue == "https://media.example.com" && json["digest"]?.stringValue == WebFiles.embedded.digest)

      let again = try await carillon.run(flags)
      #expect(again.status == 2 && again.output.isEmpty && again.errors.contains("is not empty: --force"), "it said: \(again.errors)")
      #expect(try JSONValue(parsing: String(contentsOf: configuration, encoding: .utf8)).text == json.text)
      try "own".write(to: folder.appendingPathComponent("own.txt"), atomically: true, encoding: .utf8)
      let forced = try await carillon.run(flags + ["--force", "--json", "--no-credentials"])
      let lines = try forced.lines.map { try JSONValue(parsing: $0) }
      #expect(forced.status == 0 && lines.compactMap { $0["path"]?.stringValue } == files.map(\.path) + ["device/config.json"])
      #expect(try String(contentsOf: configuration, encoding: .utf8).contains(#""devices":"/v1/device","credential":false"#))
      #expect(FileManager.default.fileExists(atPath: folder.appendingPathComponent("own.txt").path))
    }
  }

  @Test(arguments: [
    ["--devices", "https://push.example.com"], ["--devices", "wss://"], ["--devices", "v1/device"], ["--media-url", "wss://x"],
    ["--out", ""],
  ])
  func whatIsNoPlaceIsWrongUsage(_ flags: [String]) async throws {
    let refusal = try await Typed.refusal(["web", "--out", "/proc/none"] + flags)
    #expect(refusal.code == .wrongUsage && refusal.text.contains(flags[0]), "it says: \(refusal.text)")
  }

  @Test func aFolderThatCannotBeMadeIsNamed() async throws {
    let refusal = try await Typed.refusal(["web", "--out", "/proc/none/x"])
    #expect(refusal.code == .wrongUsage && refusal.text.hasPrefix("--out: cannot make /proc/none: "), "it says: \(refusal.text)")
  }
}
