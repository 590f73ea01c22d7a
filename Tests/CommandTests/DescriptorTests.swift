import Foundation
import JSON
import Kafka
import Redis
import TestSupport
import Testing
import Worker

@testable import Command

/// Processes that may open few descriptors.
@Suite struct DescriptorTests {
  /// The first line of what a path of an admin server answers, on a connection of its own.
  private static func status(_ path: String, port: Int) throws -> String {
    let socket = try RawSocket(port: port)
    try socket.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return try socket.read(through: "\r\n")
  }

  /// A connection that asks for an upgrade and says nothing further: no hello.
  private static func upgrading(port: Int) throws -> RawSocket {
    let socket = try RawSocket(port: port)
    try socket.send(
      "GET /v1/device HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        + "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: carillon.v1\r\n\r\n")
    return socket
  }

  private static func eventually(_ what: String, _ condition: () async throws -> Bool) async throws {
    let holds = await TestSupport.eventually(what) { try await condition() }
    try #require(holds)
  }

  private static func port(_ url: JSONValue?) throws -> Int {
    try #require(url?.stringValue?.firstMatch(of: /:([0-9]+)(\/|$)/).flatMap { Int($0.1) })
  }

  @Test(.onlyInAll("it is two thousand connections, and DescriptorPlan decides"))
  func `silent connections take neither the admin port nor Redis from a worker`() async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        try await withRedis(listening: .port(nil)) { redis in
          let prefix = KafkaFixture.unique("descriptors") + "."
          let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
          let created = try await carillon.run(["topics", "create", "--kafka", servers, "--topic-prefix", prefix, "--partitions", "4"])
          #expect(created.status == 0, "it said: \(created.errors)")
          let worker = try carillon.start(
            [
              "--nofile=256:256", CarillonCommand.program.path, "fan-out", "--listen", "127.0.0.1:0", "--kafka", servers, "--redis",
              redis.address.description, "--topic-prefix", prefix, "--connections", "1000", "--hello", "60s", "--json",
            ], program: URL(fileURLWithPath: "/usr/bin/prlimit"))
          let line = try JSONValue(parsing: try await worker.firstLine())
          #expect(worker.errorsSoFar.contains("the limit of descriptors is too low"))
          let (admin, devices) = (try Self.port(line["admin"]), try Self.port(line["devices"]))
          try await RedisProbe.with(redis.address) { probe in
            try await withTaskExecutorPreference(BlockingThreads.shared) {
              var silent: [RawSocket] = []
              for round in 0..<10 {
                // Half of them say nothing at all, and half nothing after the upgrade, for longer than this test waits for an answer.
                for _ in 0..<100 { silent += [try RawSocket(port: devices), try Self.upgrading(port: devices)] }
                #expect(try Self.status("/livez", port: admin).hasPrefix("HTTP/1.1 200 "), "in round \(round)")
                if round == 4 { try await probe.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }
                // It has to connect to Redis again after that, and a busy machine may keep it from an answer in time.
                try await Self.eventually("it is ready in round \(round)") {
                  try Self.status("/readyz", port: admin).hasPrefix("HTTP/1.1 200 ")
                }
              }
              silent.removeAll()
              try await Self.eventually("a device is let in") {
                let answer = try? Self.upgrading(port: devices).read(through: "\r\n")
                return answer?.hasPrefix("HTTP/1.1 101 ") ?? false
              }
            }
          }
          worker.signal(SIGTERM)
          #expect(try await worker.result().status == 0)
        }
      }
    }
  }

  @Test func `devices get no descriptor that the process needs for itself`() {
    let ample = DescriptorPlan(limit: 100_000, lanes: 2, devices: 50_000)
    #expect(ample.limit - Int(ample.maximum) == DescriptorPlan.perProcess + 2 * DescriptorPlan.perLane)
    #expect(ample.wanted < ample.limit)
    let scarce = DescriptorPlan(limit: 256, lanes: 8, devices: 50_000)
    #expect(scarce.maximum == 128 && scarce.wanted > scarce.limit)
    #expect(throws: UsageError.self) { try DescriptorPlan(limit: 133, lanes: 2, devices: 1).check(lanes: 2) }
    #expect(throws: Never.self) { try DescriptorPlan(limit: 256, lanes: 2, devices: 1).check(lanes: 2) }
    let unlimited = DescriptorPlan(limit: .max, lanes: 1, devices: 50_000)
    #expect(unlimited.maximum == .max && unlimited.wanted < unlimited.limit)
  }
}
