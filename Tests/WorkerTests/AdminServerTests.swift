import Cryptography
import EventLoop
import Foundation
import FoundationNetworking
import HTTP
import TestSupport
import Testing
import Worker

@Suite struct AdminServerTests {
  private func get(_ path: String, _ admin: LoopServer) async throws -> (status: Int, type: String, body: String) {
    let url = try #require(URL(string: "http://\(await admin.address)\(path)"))
    let (data, response) = try await URLSession(configuration: .ephemeral).data(from: url)
    let http = try #require(response as? HTTPURLResponse)
    return (http.statusCode, http.value(forHTTPHeaderField: "Content-Type") ?? "", String(decoding: data, as: UTF8.self))
  }

  @Test func metricsAndReadinessAreAnswered() async throws {
    let (health, metrics) = (Health(), MetricRegistry())
    metrics.make(MetricNames.processStart).set(7)
    health.set("redis", ready: false, "connecting")
    let admin = try await AdminServer.start(at: SocketAddress(host: "127.0.0.1", port: 0), health: health, metrics: metrics)

    let shown = try await get("/metrics", admin)
    #expect(shown.status == 200)
    #expect(shown.type.hasPrefix("text/plain; version=0.0.4"))
    #expect(shown.body == metrics.text)
    let unready = try await get("/readyz", admin)
    #expect(unready.status == 503)
    #expect(unready.body == health.json + "\n")
    health.set("redis", ready: true)
    #expect(try await get("/readyz", admin).status == 200)
    #expect(try await get("/livez", admin).status == 200)
    #expect(try await get("/nothing", admin).status == 404)
    await admin.close()
  }

  @Test func itTakesTLSOnlyIfItIsToldTo() async throws {
    let good = try await TestCertificates.shared.value.good
    let identity = try TLSIdentity(certificates: Array(good.certificate.utf8), key: Array(good.key.utf8))
    let admin = try await AdminServer.start(
      at: SocketAddress(host: "127.0.0.1", port: 0), health: Health(), metrics: MetricRegistry(),
      tls: TLSServerConfiguration(InForce(identity), ticketSecrets: InForce(KeyRing([KeyRing.Key([1])]))))
    let answer = try await get("/livez", admin)
    #expect(answer.status == 400 && answer.body.contains("https://"))
    await admin.close()
  }

  @Test func livenessIsLostWhileALoopStandsStillAndTheAnswerStillComes() async throws {
    let clock = HealthTests.TestClock()
    let health = Health(silence: .seconds(10), now: { clock.now })
    let loop = EventLoop(name: "lane-0")
    health.watch(loop)
    let admin = try await AdminServer.start(at: SocketAddress(host: "127.0.0.1", port: 0), health: health, metrics: MetricRegistry())
    #expect(try await get("/livez", admin).status == 200)
    let (isHeld, release) = (Latch(), Latch())
    loop.execute {
      isHeld.open()
      release.block()
    }
    await isHeld.wait()
    _ = try await get("/livez", admin)
    clock.advance(10_001)
    let answer = try await get("/livez", admin)
    #expect(answer.status == 503)
    #expect(answer.body.hasPrefix("lane-0 has not turned for "))

    release.open()
    try await loop.run {}
    await eventually("it is alive again") { try await get("/livez", admin).status == 200 }
    health.unwatch(loop)
    await loop.close()
    await admin.close()
  }

  @Test func `silent connections do not keep those out who ask`() async throws {
    let admin = try await AdminServer.start(at: SocketAddress(host: "127.0.0.1", port: 0), health: Health(), metrics: MetricRegistry())
    let port = await admin.address.port
    try await withTaskExecutorPreference(BlockingThreads.shared) {
      var silent: [RawSocket] = []
      for path in ["/livez", "/readyz", "/metrics"] {
        for _ in 0...AdminServer.maximumConnections { silent.append(try RawSocket(port: port)) }
        let socket = try RawSocket(port: port)
        try socket.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        #expect(String(decoding: try socket.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 200 "), "\(path)")
      }
      for socket in silent { socket.close() }
    }
    await admin.close()
  }

  @Test(arguments: [
    ("127.0.0.1", "Host: localhost", 200), ("127.0.0.1", "Host: LOCALHOST:7172", 200), ("127.0.0.1", "Host: 127.0.0.2:1", 200),
    ("127.0.0.1", "Host: [::1]:7172", 200), ("127.0.0.1", "Host: evil.example:7172", 403), ("127.0.0.1", "Host: 127.evil.example", 403),
    ("127.0.0.1", "Host: localhost.evil.example", 403), ("127.0.0.1", "Host: 10.0.0.1", 403), ("127.0.0.1", "Host: [::2]", 403),
    ("127.0.0.1", "Host:", 403), ("127.0.0.1", "Host: localhost\r\nOrigin: http://localhost:7172", 200),
    ("127.0.0.1", "Host: localhost\r\nOrigin: https://evil.example", 403), ("127.0.0.1", "Host: localhost\r\nOrigin: null", 403),
    ("0.0.0.0", "Host: carillon.example", 200), ("0.0.0.0", "Host: carillon.example:80\r\nOrigin: http://carillon.example", 200),
    ("0.0.0.0", "Host: carillon.example\r\nOrigin: http://evil.example", 403),
  ]) func noWebPageIsAnswered(at host: String, fields: String, status: Int) async throws {
    let metrics = MetricRegistry()
    let admin = try await AdminServer.start(at: SocketAddress(host: host, port: 0), health: Health(), metrics: metrics)
    let port = await admin.address.port
    try await withTaskExecutorPreference(BlockingThreads.shared) {
      let socket = try RawSocket(port: port)
      try socket.send("GET /metrics HTTP/1.1\r\n\(fields)\r\nConnection: close\r\n\r\n")
      #expect(String(decoding: try socket.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 \(status) "))
    }
    let field = fields.contains("Origin") ? "origin" : "host"
    #expect(metrics.text.contains("carillon_admin_refused_total{field=\"\(field)\"} \(status == 403 ? 1 : 0)\n"))
    await admin.close()
  }

  @Test func addressInUseIsThrownAndNothingIsLeftRunning() async throws {
    let admin = try await AdminServer.start(at: SocketAddress(host: "127.0.0.1", port: 0), health: Health(), metrics: MetricRegistry())
    let address = await admin.address
    await #expect(throws: EventLoopError.self) {
      _ = try await AdminServer.start(at: address, health: Health(), metrics: MetricRegistry())
    }
    await admin.close()
  }
}
