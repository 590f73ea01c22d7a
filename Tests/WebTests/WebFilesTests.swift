import EventLoop
import Foundation
import JSON
import Testing

@testable import Web

/// The files of a browser: which there are, and how one version refers to itself.
@Suite struct WebFilesTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources/Web")
    .standardizedFileURL

  private static func file(_ path: String, _ text: String) -> WebFile { WebFile(path: path, bytes: .make(text)) }

  private func bytes(_ file: WebFile) -> [UInt8] { file.bytes.withUnsafeBytes { Array($0) } }

  private func text(_ files: WebFiles, _ path: String) throws -> String {
    String(decoding: bytes(try #require(files.staying.first { $0.path == path })), as: UTF8.self)
  }

  @Test func `the program has every file of the folder, as it is`() throws {
    let paths = try FileManager.default.subpathsOfDirectory(atPath: Self.folder.path).filter { path in
      !path.hasSuffix(".swift") && !path.hasPrefix("EmbeddedWeb") && path.contains(".") && path != "deno.json"
    }
    #expect(WebFiles.embedded.all.map(\.path) == paths.sorted(), "the list is in Sources/Web/EmbeddedWeb/files.c")
    for file in WebFiles.embedded.all {
      #expect(try bytes(file) == Array(Data(contentsOf: Self.folder.appendingPathComponent(file.path))), "\(file.path)")
    }
  }

  @Test func `what its own files refer to by version is there`() throws {
    let files = WebFiles.embedded
    for file in files.staying where !file.contentType.hasPrefix("image/") {
      for match in String(decoding: bytes(file), as: UTF8.self).matches(of: /"\/web\/([^"\/]*)\/([^"]*)"/) {
        #expect(match.1 == files.digest && files.all.contains { $0.path == match.2 }, "\(file.path) refers to \(match.0)")
      }
    }
    let page = try text(files, "device/index.html")
    #expect(page.contains("\"/web/\(files.digest)/device/") && !page.contains("\"./"))
  }

  @Test func `the digest is of all paths and bytes, in any order`() throws {
    let files = [Self.file("a.js", "1"), Self.file("device/b.js", "2")]
    let digest = WebFiles(files).digest
    #expect(digest.utf8.count == 32 && digest.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) })
    #expect(WebFiles(files.reversed()).digest == digest)
    for other in [
      [files[0]], files + [Self.file("c.txt", "3")], [Self.file("a.js", "2"), files[1]], [Self.file("b.js", "1"), files[1]],
      [Self.file("a.js", "2"), Self.file("device/b.js", "1")],
    ] {
      #expect(WebFiles(other).digest != digest)
    }
  }

  @Test func `references to files of a version lead to the path of that version`() throws {
    let page = #"<a href="./x.css"><script src="boot.js"></script> "../carillon.js" "https://./" './y'"#
    let files = WebFiles([
      Self.file("carillon.js", #"import "./other.js""#), Self.file("device/index.html", page),
      Self.file("device/parts/x.js", #"import "./y.js"; import "../z.js""#), Self.file("device/x.css", #"url("./x.png")"#),
    ])
    let root = "/web/\(files.digest)"
    #expect(
      try text(files, "device/index.html")
        == #"<a href="\#(root)/device/x.css"><script src="boot.js"></script> "\#(root)/carillon.js" "https://./" './y'"#)
    #expect(try text(files, "device/parts/x.js") == #"import "\#(root)/device/parts/y.js"; import "\#(root)/device/z.js""#)
    #expect(try text(files, "device/x.css") == #"url("./x.png")"#)
    #expect(files.staying.count == 3)
    #expect(String(decoding: bytes(try #require(files.all.first { $0.path == "device/index.html" })), as: UTF8.self) == page)
  }

  @Test(arguments: [
    ("x.html", "text/html; charset=utf-8"), ("x.css", "text/css; charset=utf-8"), ("x.js", "text/javascript; charset=utf-8"),
    ("x.webmanifest", "application/manifest+json"), ("x.svg", "image/svg+xml"), ("a.js/x.png", "image/png"),
  ]) func `the type follows from the ending`(_ path: String, _ type: String) {
    #expect(Self.file(path, "x").contentType == type)
  }

  @Test(arguments: [
    ("https://push.example.com", "https://push.example.com"), ("https://push.example.com:8443/a/b", "https://push.example.com:8443"),
    ("http://[::1]:7173/a", "http://[::1]:7173"), (nil, nil),
  ]) func `the page learns the origin of media`(_ base: String?, _ origin: String?) throws {
    let files = WebFiles([Self.file("a.js", "1")])
    let json = try JSONValue(parsing: files.configuration(devices: "/v1/device", needsCredential: true, mediaBase: base))
    #expect(json["digest"]?.stringValue == files.digest && json["credential"]?.text == "true" && json["media"]?.stringValue == origin)
    #expect(json["origins"] == nil && json["environment"] == nil)
  }
}
