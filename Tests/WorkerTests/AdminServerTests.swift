import EventLoop
import Foundation
import FoundationNetworking
import Testing
import Worker

@Suite struct AdminServerTests {
  private func get(_ path: String, _ admin: AdminServer) async throws -> (status: Int, type: String, body: String) {
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

  @Test func livenessIsLostWhileALoopStandsStillAndTheAnswerStillComes() async throws {
    let health = Health(silence: .seconds(1))
    let loop = EventLoop(name: "lane-0")
    health.watch(loop)
    let admin = try await AdminServer.start(at: SocketAddress(host: "127.0.0.1", port: 0), health: health, metrics: MetricRegistry())
    #expect(try await get("/livez", admin).status == 200)
    let release = DispatchSemaphore(value: 0)
    loop.execute { _ = release.wait(timeout: .now() + 30) }

    let deadline = ContinuousClock.now + .seconds(20)
    var answer = try await get("/livez", admin)
    while answer.status == 200 && ContinuousClock.now < deadline { answer = try await get("/livez", admin) }
    #expect(answer.status == 503)
    #expect(answer.body.hasPrefix("lane-0 has not turned for "))

    release.signal()
    try await loop.run {}
    #expect(try await get("/livez", admin).status == 200)
    health.unwatch(loop)
    await loop.close()
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
