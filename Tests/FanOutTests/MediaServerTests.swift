import Cryptography
import EventLoop
import Extensions
import Foundation
import HTTP
import Notifications
import TestSupport
import Testing
import Worker

@testable import FanOut

/// Devices fetch media by the links that they were given, whole or in parts, and by nothing else.
@Suite struct MediaServerTests {
  private static let keys = InForce(KeyRing([KeyRing.Key([UInt8](repeating: 7, count: 32))]))
  private static let hash = MediaHash(String(repeating: "ab", count: 32))!
  private static let gone = MediaHash(String(repeating: "cd", count: 32))!
  private static let content = "GIF89a" + String(repeating: "0123456789", count: 50_000)

  /// A server with one file, and a client.
  private actor Place: LoopActor {
    nonisolated let loop = EventLoop(name: "media-test")
    let base: String
    let metrics: MetricRegistry
    private var client: HTTPClient?

    /// The authority that a server with TLS needs.
    private let authorities: String?

    init(_ server: LoopServer, _ metrics: MetricRegistry, _ authorities: String?) async {
      base = "http\(authorities == nil ? "" : "s")://\(await server.address)"
      self.authorities = authorities
      self.metrics = metrics
    }

    func link(to hash: MediaHash = MediaServerTests.hash, now: Int64 = WallClock.seconds()) -> String {
      MediaLinks(MediaLinkSettings(base: base, seconds: 600), MediaServerTests.keys).link(to: hash, deviceHash: 1, now: now).url
    }

    func ask(
      _ url: String, _ headers: [(String, String)] = [], _ method: HTTPClientRequest.Method = .get
    ) async throws -> (status: Int, headers: [String: String], body: String) {
      if client == nil {
        var configuration = HTTPClientConfiguration(hosts: try HTTPHostRule([String(base.split(separator: "/")[1])]))
        configuration.schemes = [.http, .https]
        configuration.certificateFile = authorities
        configuration.addresses = HTTPAddressRule(admitting: [try IPNetwork("127.0.0.0/8")])
        client = HTTPClient(on: loop, configuration: configuration)
      }
      var request = HTTPClientRequest(method, url, headers: headers.map { (name: $0.0, value: $0.1) })
      request.timeoutMilliseconds = 60_000
      guard let client else { preconditionFailure("it was made") }
      let response = try await client.send(request)
      let names = ["content-type", "etag", "content-range", "content-length", "cache-control", "allow"]
      return (
        response.status.rawValue,
        Dictionary(uniqueKeysWithValues: names.compactMap { name in response.headers[name].map { (name, $0) } }),
        String(decoding: response.body, as: UTF8.self)
      )
    }

    func close() {
      client?.close()
      client = nil
    }
  }

  private static func with(overTLS: Bool = false, _ body: (Place, MediaFolder) async throws -> Void) async throws {
    let certificates = try await TestCertificates.shared.value
    let good = try TLSIdentity(certificates: Array(certificates.good.certificate.utf8), key: Array(certificates.good.key.utf8))
    try await TestFolder.with(["media/ab/\(hash)": content, "ca.pem": certificates.authority]) { folder in
      let media = MediaFolder(folder.path + "/media")
      let metrics = MetricRegistry()
      let server = try await MediaServer.start(
        at: SocketAddress(host: "127.0.0.1", port: 0), media, keys: keys,
        tls: overTLS ? TLSServerConfiguration(InForce(good), ticketSecrets: keys) : nil, logger: .silent, metrics: metrics)
      let place = await Place(server, metrics, overTLS ? folder.path + "/ca.pem" : nil)
      let result: Result<Void, any Error>
      do { result = .success(try await body(place, media)) } catch { result = .failure(error) }
      await place.close()
      await server.close(withinMilliseconds: 1_000)
      await place.loop.close()
      try result.get()
    }
  }

  @Test(arguments: [false, true]) func aFileIsServedWholeAndInParts(overTLS: Bool) async throws {
    try await Self.with(overTLS: overTLS) { place, _ in
      let url = await place.link()
      let whole = try await place.ask(url)
      #expect(whole.status == 200 && whole.body == Self.content)
      #expect(whole.headers["content-type"] == "image/gif" && whole.headers["etag"] == "\"\(Self.hash)\"")
      #expect(whole.headers["cache-control"]?.hasPrefix("private, max-age=") == true)
      let head = try await place.ask(url, [], .head)
      #expect(head.status == 200 && head.body == "" && head.headers["content-length"] == "\(Self.content.utf8.count)")
      let part = try await place.ask(url, [("Range", "bytes=6-15")])
      #expect(part.status == 206 && part.body == "0123456789")
      #expect(part.headers["content-range"] == "bytes 6-15/\(Self.content.utf8.count)")
      let beyond = try await place.ask(url, [("Range", "bytes=\(Self.content.utf8.count)-")])
      #expect(beyond.status == 416 && beyond.headers["content-range"] == "bytes */\(Self.content.utf8.count)")
      let known = try await place.ask(url, [("If-None-Match", "\"\(Self.hash)\"")])
      #expect(known.status == 304 && known.body == "")
    }
  }

  @Test func whatIsNoLinkIsRefused() async throws {
    try await Self.with { place, folder in
      let url = await place.link()
      #expect(try await place.ask(url + "x").status == 403)
      #expect(try await place.ask(String(url.prefix { $0 != "?" })).status == 403)
      #expect(try await place.ask(url.replacing("abab", with: "cdab", maxReplacements: 1)).status == 403)
      #expect(try await place.ask(place.link(now: 1_764_000_000)).status == 403, "it has expired")
      #expect(try await place.ask(place.link(to: Self.gone)).status == 404)
      for path in ["", "x", "../ab/\(Self.hash)", "\(Self.hash).1", String(repeating: "a", count: 1_000)] {
        #expect(try await place.ask("\(place.base)/v1/media/\(path)?\(url.drop { $0 != "?" }.dropFirst())").status == 404, "\(path)")
      }
      let post = try await place.ask(url, [], .post(body: []))
      #expect(post.status == 405 && post.headers["allow"] == "GET, HEAD")
    }
  }

  @Test func aFileThatIsNoneOfOursIsNotServed() async throws {
    try await Self.with { place, folder in
      let url = await place.link()
      try "<html>".write(toFile: "\(folder.path)/ab/\(Self.hash)", atomically: true, encoding: .utf8)
      #expect(try await place.ask(url).status == 500)
      try FileManager.default.removeItem(atPath: "\(folder.path)/ab/\(Self.hash)")
      #expect(symlink("/etc/passwd", "\(folder.path)/ab/\(Self.hash)") == 0)
      #expect(try await place.ask(url).status == 500)
    }
  }

  @Test func whatIsServedIsCounted() async throws {
    try await Self.with { place, _ in
      _ = try await place.ask(await place.link())
      _ = try await place.ask(await place.link() + "x")
      let text = place.metrics.text
      #expect(text.contains("carillon_media_served_total{status=\"200\"} 1\n"), "\(text)")
      #expect(text.contains("carillon_media_served_total{status=\"403\"} 1\n"))
      #expect(text.contains("carillon_media_served_bytes_total \(Self.content.utf8.count)\n"))
    }
  }
}
