import Foundation
import JSON
import TestSupport
import Testing
import Worker

@testable import Command

/// What a web page in a browser of the same machine can reach of `carillon up`.
@Suite struct OriginTests {
  /// The status line's code for a request.
  private func status(_ port: Int, _ request: String) throws -> Int? {
    let socket = try RawSocket(port: port)
    try socket.send(request)
    return Int(try socket.read(through: "\r\n").split(separator: " ").dropFirst().first ?? "")
  }

  private func upgrade(_ fields: String, host: String = "localhost") -> String {
    "GET /v1/device HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: carillon.v1\r\n\(fields)\r\n"
  }

  private func port(_ places: JSONValue, _ name: String) throws -> Int {
    try #require(places[name]?.stringValue.flatMap { URL(string: $0)?.port })
  }

  @Test func aWebPageOpensTheDeviceSocketOnlyWhereItsOriginIsListed() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(
        CarillonCommand.up,
        environment: ["CARILLON_FANOUT_ALLOWED_ORIGINS": "https://app.example.com,http://localhost:3000"])
      let places = try JSONValue(parsing: try await up.firstLine())
      let (devices, admin) = (try port(places, "devices"), try port(places, "metrics"))
      try await withTaskExecutorPreference(BlockingThreads.shared) {
        #expect(try status(devices, upgrade("")) == 101)
        #expect(try status(devices, upgrade("Origin: https://app.example.com\r\n")) == 101)
        #expect(try status(devices, upgrade("Origin: http://LOCALHOST:3000\r\n")) == 101)
        #expect(try status(devices, upgrade("Origin: https://evil.example\r\n")) == 403)
        #expect(try status(devices, upgrade("Origin: http://localhost:3001\r\n")) == 403)
        #expect(try status(devices, upgrade("Origin: null\r\n")) == 403)
        for host in ["localhost:\(devices)", "127.0.0.1:\(devices)"] {
          #expect(try status(devices, upgrade("Origin: http://\(host)\r\n", host: host)) == 101, "the server's own")
        }
        let refused = try RawSocket(port: devices)
        try refused.send(upgrade("Origin: http://rebound.example\r\nConnection: close\r\n", host: "rebound.example"))
        let answer = String(decoding: try refused.readToEnd(), as: UTF8.self)
        #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.contains("--allowed-origins http://rebound.example admits it"), "\(answer)")
        #expect(try status(devices, upgrade("Origin: https://app.example.com\r\nOrigin: https://evil.example\r\n")) == 403)
        #expect(try status(admin, "GET /metrics HTTP/1.1\r\nHost: evil.example:\(admin)\r\n\r\n") == 403)
        let socket = try RawSocket(port: admin)
        try socket.send("GET /metrics HTTP/1.1\r\nHost: localhost:\(admin)\r\nConnection: close\r\n\r\n")
        let metrics = String(decoding: try socket.readToEnd(), as: UTF8.self)
        #expect(metrics.contains("carillon_fanout_limited_total{limit=\"origins\"} 5\n"))
        #expect(metrics.contains("carillon_admin_refused_total{field=\"host\"} 1\n"))
      }
      try await up.stop()
    }
  }

  @Test(arguments: ["https://app.example.com/", "app.example.com", "https://*.example.com", "https://"])
  func whatIsNoOriginIsWrongUsage(_ origin: String) async throws {
    let refusal = try await Typed.refusal(["up", "--allowed-origins", origin])
    #expect(refusal.code == .wrongUsage && refusal.text.contains("--allowed-origins"), "it says: \(refusal.text)")
  }
}
