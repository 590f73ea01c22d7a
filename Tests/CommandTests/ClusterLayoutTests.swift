import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing

@testable import Command

/// The layouts of a cluster, compared when a worker starts.
@Suite struct ClusterLayoutTests {
  @Test func `a worker refuses a cluster whose oldest layout it does not read, and works beside newer ones`() async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with(embeddedOnly: true) { kafka in
        try await withRedis(listening: .port(nil)) { server in
          try await RedisProbe.with(server.address) { redis in
            let flags = [
              "--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--topic-prefix",
              KafkaFixture.unique("layouts") + ".",
            ]
            #expect(try await carillon.run(["topics", "create", "--partitions", "4"] + flags).status == 0)
            let (id, own) = (try await kafka.admin.describeCluster().id ?? "", Layout.cluster.newest)
            let place = flags + ["--redis", server.address.description, "--json"]
            let fanOut = ["fan-out", "--listen", "127.0.0.1:0"]
            try await redis.command("HSET", "cluster", "kafka", .text(id), "prefix", .text(flags[3]), "layout", "9", "needs", "8")
            for role in [["transform"], fanOut] {
              let refused = try await carillon.run(role + place)
              #expect(refused.status == 2, "it said: \(refused.errors)")
              #expect(refused.errors.contains("has the layouts 8 to 9, and this program reads \(own) to \(own): start a newer program"))
            }
            let said = try await carillon.run(["status"] + place)
            let status = try #require(said.lines.lazy.compactMap { try? JSONValue(parsing: $0) }.first { $0["redis"] != nil })
            #expect(status["redis"]?["layout"] == 9 && status["redis"]?["oldestLayout"] == 8, "\(said.output)")
            #expect(said.status == 1 && said.output.contains("start a newer program"))

            // The oldest layout is this program's: newer entries may lie there, which it leaves alone.
            try await redis.command("HSET", "cluster", "layout", "\(own + 1)", "needs", "\(own)")
            for role in [["transform"], fanOut] { _ = try await carillon.start(role + place).firstLine() }
            #expect(try await redis.command("HMGET", "cluster", "layout", "needs").array?.compactMap(\.text) == ["\(own + 1)", "\(own)"])
            await carillon.end()
          }
        }
      }
    }
  }
}
