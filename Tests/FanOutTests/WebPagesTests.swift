import EventLoop
import HTTP
import JSON
import Kafka
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

  private static func settings() throws -> FanOutSettings {
    FanOutSettings(
      topics: Topics(), kafka: KafkaConfiguration(bootstrapServers: ["127.0.0.1:1"], clientID: "web"),
      store: StoreConfiguration(try RedisPlace.any), listen: SocketAddress(host: "127.0.0.1", port: 0), admission: .anyone,
      receiptKey: [UInt8](repeating: 1, count: 32), worker: "web")
  }

  private static func with(
    _ change: (inout FanOutSettings) -> Void = { _ in }, _ body: @Sendable ((String) throws -> Answer) throws -> Void
  ) async throws {
    var settings = try settings()
    change(&settings)
    let (loop, place) = (EventLoop(name: "web-test"), settings)
    let server = try await loop.run {
      var routes = HTTPRoutes()
      WebPages(files, place).add(to: &routes)
      return try HTTPServer(on: loop, at: place.listen, configuration: HTTPServerConfiguration(), routes: routes)
    }
    try await withTaskExecutorPreference(BlockingThreads.shared) {
      try body { request in
        let socket = try RawSocket(port: server.localAddress.port)
        try socket.send(request + "Connection: close\r\n\r\n")
        let text = String(decoding: try socket.readToEnd(), as: UTF8.self)
        let end = try #require(text.firstRange(of: "\r\n\r\n"))
        let status = try #require(Int(text.split(separator: " ")[1]))
        return Answer(status: status, head: String(text[..<end.lowerBound]), body: String(text[end.upperBound...]))
      }
    }
    await loop.close()
  }
}
