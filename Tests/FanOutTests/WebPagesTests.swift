import Cryptography
import EventLoop
import HTTP
import JSON
import Kafka
import Notifications
import Redis
import Store
import TestSupport
import Testing
import Web
import Worker

@testable import FanOut

/// Browsers get the notification center and `carillon.js` by paths of one version, with a policy for pages, and nothing else.
@Suite struct WebPagesTests {
  private static let files = WebFiles.embedded

  /// The answer to a request for these bytes of a request's head, without its last line.
  private struct Answer {
    let status: Int
    let head: String
    let body: String

    func field(_ name: String) -> String? {
      head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
        .map { String($0.dropFirst(name.utf8.count + 2)) }
    }
  }

  /// A server that has nothing but these pages.
  private actor Place: LoopActor {
    nonisolated let loop = EventLoop(name: "web-test")
    private let settings: FanOutSettings
    private var server: HTTPServer?

    init(_ settings: FanOutSettings) { self.settings = settings }

    func listen() throws -> Int {
      var routes = HTTPRoutes()
      WebPages(files, settings).add(to: &routes)
      let server = try HTTPServer(on: loop, at: settings.listen, routes: routes)
      self.server = server
      return server.localAddress.port
    }

    func close() async { await server?.close(withinMilliseconds: 0) }
    nonisolated func end() async {
      await close()
      await loop.close()
    }
  }

  /// Gives `body` a function that sends a request line and fields, and returns the answer.
  private static func with(
    _ change: (inout FanOutSettings) -> Void = { _ in }, _ body: @Sendable ((String) throws -> Answer) throws -> Void
  ) async throws {
    var settings = FanOutSettings(
      topics: Topics(), kafka: KafkaConfiguration(bootstrapServers: ["127.0.0.1:1"], clientID: "web"),
      store: StoreConfiguration(try RedisAddress("127.0.0.1:1")), listen: SocketAddress(host: "127.0.0.1", port: 0), admission: .anyone,
      keys: InForce(KeyRing([KeyRing.Key([1, 2, 3])])), worker: "web/0")
    change(&settings)
    let place = Place(settings)
    let result: Result<Void, any Error>
    do {
      let port = try await place.listen()
      try await withTaskExecutorPreference(BlockingThreads.shared) {
        try body { request in
          let socket = try RawSocket(port: port)
          let host = request.contains("Host:") ? "" : "Host: 127.0.0.1:7171\r\n"
          try socket.send("\(request)\r\n\(host)Connection: close\r\n\r\n")
          let text = String(decoding: try socket.readToEnd(), as: UTF8.self)
          let end = try #require(text.firstRange(of: "\r\n\r\n"), "\(text)")
          return Answer(
            status: try #require(Int(text.split(separator: " ")[1])), head: String(text[..<end.lowerBound]),
            body: String(text[end.upperBound...]))
        }
      }
      result = .success(())
    } catch { result = .failure(error) }
    await place.end()
    try result.get()
  }

  @Test func `the page and each file are at the paths of their version`() async throws {
    try await Self.with { get in
      let page = try get("GET /device/ HTTP/1.1")
      #expect(page.status == 200 && page.field("Content-Type") == "text/html; charset=utf-8" && page.field("Cache-Control") == "no-cache")
      #expect(page.body.contains("\"/web/\(Self.files.digest)/device/"))
      for file in Self.files.staying {
        let answer = try get("GET /\(file.path)?v=1 HTTP/1.1")
        #expect(answer.status == 200 && answer.field("Cache-Control") == "no-cache", "\(file.path)")
      }
      for file in Self.files.all {
        let answer = try get("GET /web/\(Self.files.digest)/\(file.path) HTTP/1.1")
        #expect(answer.status == 200 && answer.field("Content-Type") == file.contentType, "\(file.path)")
        #expect(answer.field("Cache-Control")?.hasPrefix("public, max-age=31536000, immutable") == true)
        #expect(answer.field("Content-Length") == "\(file.bytes.count)")
      }
      let short = try get("GET /device HTTP/1.1")
      #expect(short.status == 308 && short.field("Location") == "/device/")
    }
  }

  @Test func `a browser that has a file gets no second one`() async throws {
    try await Self.with { get in
      for path in ["/device/", "/web/\(Self.files.digest)/carillon.js"] {
        let file = try get("GET \(path) HTTP/1.1")
        let tag = try #require(file.field("ETag"))
        let again = try get("GET \(path) HTTP/1.1\r\nIf-None-Match: \(tag)")
        #expect(again.status == 304 && again.body == "" && again.field("ETag") == tag)
        #expect(again.field("Cache-Control") == file.field("Cache-Control"))
        #expect(again.field("Content-Security-Policy") == file.field("Content-Security-Policy"))
        #expect(try get("GET \(path) HTTP/1.1\r\nIf-None-Match: \"0\"").status == 200)
        let head = try get("HEAD \(path) HTTP/1.1")
        #expect(head.status == 200 && head.body == "" && head.field("Content-Length") == "\(file.body.utf8.count)")
        let part = try get("GET \(path) HTTP/1.1\r\nRange: bytes=3-9")
        #expect(part.status == 206 && part.body == String(decoding: Array(file.body.utf8)[3...9], as: UTF8.self))
      }
    }
  }

  @Test func `another version's files are refused in words, and kept by no cache`() async throws {
    try await Self.with { get in
      let other = String(repeating: "0", count: 32)
      for path in ["/web/\(other)/carillon.js", "/web/\(Self.files.digest.uppercased())/carillon.js", "/web/x", "/web//"] {
        let answer = try get("GET \(path) HTTP/1.1")
        #expect(answer.status == 404 && answer.field("Cache-Control") == "no-store", "\(path)")
        #expect(answer.body.contains("version \(Self.files.digest) only: load the page again"), "\(answer.body)")
      }
    }
  }

  @Test func `no path leads out of the files`() async throws {
    let root = "/web/\(Self.files.digest)"
    try await Self.with { get in
      for path in [
        "/device/../device/", "/device/%2e%2e/carillon.js", "/device/./index.html", "/device//index.html", "/device/index.html/",
        "/device/%69ndex.html", "/device/index.html%00.js", "/device/..%5c", "/device/Index.html", "\(root)/", "\(root)/device/",
        "\(root)/../\(Self.files.digest)/carillon.js", "\(root)/device/../carillon.js", "\(root)/device/config.json",
        "/device/" + String(repeating: "a", count: 8_000),
      ] {
        let answer = try get("GET \(path) HTTP/1.1")
        #expect(answer.status == 404 && answer.body == "There is nothing at this path.\n", "\(path): \(answer.status)")
        #expect(answer.field("X-Content-Type-Options") == "nosniff")
      }
      for path in ["/", "/web", "/web/", "/devices", "/device.html"] { #expect(try get("GET \(path) HTTP/1.1").status == 404) }
      #expect(try get("GET /device/\0 HTTP/1.1").status == 400)
      #expect(try get("GET /device/\(String(repeating: "a", count: 20_000)) HTTP/1.1").status == 431)
      for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = try get("\(method) /device/ HTTP/1.1")
        #expect(answer.status == 405 && answer.field("Allow") == "GET, HEAD", "\(method)")
        #expect(try get("\(method) \(root)/carillon.js HTTP/1.1").status == 405)
      }
    }
  }

  @Test func `pages may run no script but their own, and load from their worker and its media`() async throws {
    try await Self.with {
      $0.media = MediaLinkSettings(base: "https://media.example.com/carillon", seconds: 60)
    } _: { get in
      for path in ["/device/", "/device/config.json", "/web/\(Self.files.digest)/carillon.js", "/device/none"] {
        let answer = try get("GET \(path) HTTP/1.1\r\nHost: push.example.com:8443")
        let policy = try #require(answer.field("Content-Security-Policy"))
        let rules = policy.split(separator: "; ").map(String.init)
        for rule in [
          "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob: https://media.example.com",
          "media-src 'self' blob: https://media.example.com", "connect-src 'self' ws://push.example.com:8443 wss://push.example.com:8443",
          "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types carillon",
        ] {
          #expect(rules.contains(rule), "\(path) lacks \(rule): \(policy)")
        }
        #expect(!policy.contains("unsafe") && !policy.contains("*"))
        #expect(answer.field("X-Content-Type-Options") == "nosniff" && answer.field("Referrer-Policy") == "no-referrer")
      }
      // What a client says of the host adds nothing else to the policy.
      for host in ["x; script-src *", "x *", "[::1]:7171", "é", String(repeating: "a", count: 300)] {
        let answer = try get("GET /device/ HTTP/1.1\r\nHost: \(host)")
        if answer.status == 400 { continue }
        #expect(answer.field("Content-Security-Policy")?.contains("; connect-src 'self'; ") == true, "\(host)")
      }
    }
  }

  @Test func `the page learns what it needs`() async throws {
    try await Self.with { get in
      let answer = try get("GET /device/config.json HTTP/1.1")
      #expect(answer.field("Cache-Control") == "no-store" && answer.field("Content-Type") == "application/json")
      let json = try JSONValue(parsing: answer.body)
      #expect(json["digest"]?.stringValue == Self.files.digest && json["devices"]?.stringValue == "/v1/device")
      #expect(json["credential"]?.text == "false" && json["media"]?.text == "null" && json["environment"]?.stringValue == "development")
      #expect(json["origins"]?.text == #"["http://127.0.0.1:7171","https://127.0.0.1:7171"]"#)
      let named = try get("GET /device/config.json HTTP/1.1\r\nHost: push.example.com")
      #expect(try JSONValue(parsing: named.body)["origins"]?.text == "[]", "a name may be rebound")
    }
    try await Self.with {
      $0.admission = .credential
      $0.allowedOrigins = ["https://push.example.com"]
      $0.environment = .production
    } _: { get in
      let json = try JSONValue(parsing: try get("GET /device/config.json HTTP/1.1\r\nHost: Push.example.com").body)
      #expect(json["credential"]?.text == "true" && json["environment"]?.stringValue == "production")
      #expect(json["origins"]?.text == #"["https://push.example.com"]"#)
    }
  }
}
