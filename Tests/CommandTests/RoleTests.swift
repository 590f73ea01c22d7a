import Foundation
import FoundationNetworking
import JSON
import Kafka
import Redis
import TestSupport
import Testing

/// The roles as processes: starting, being ready, ending.
@Suite struct RoleTests {
  /// What `/readyz` or another path answers.
  private func get(_ url: String) async throws -> (status: Int, text: String) {
    let (data, response) = try await URLSession.shared.data(from: try #require(URL(string: url)))
    return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
  }

  @Test(arguments: ["transform", "fan-out"]) func itWaitsForRedisAndSaysWhatIsMissing(role: String) async throws {
    try await CarillonCommand.with { carillon in
      let process = try carillon.start(
        [role, "--kafka", "127.0.0.1:9", "--redis", "127.0.0.1:9", "--admin", "127.0.0.1:0", "--log-format", "json"])
      try await process.untilErrors(contain: "Redis does not answer")
      let lines = process.errorsSoFar.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }
      let said = lines.compactMap { $0["admin"]?.stringValue }
      let admin = try #require(said.first)
      let ready = try await get("\(admin)/readyz")
      #expect(ready.status == 503)
      #expect(ready.text.contains("is Redis running there?"))
      #expect(try await get("\(admin)/livez").status == 200)
      process.signal(SIGTERM)
      let result = try await process.result()
      #expect(result.status == 0, "it said: \(result.errors)")
      #expect(result.output.isEmpty)
      for line in result.errors.split(separator: "\n") { #expect(throws: Never.self) { try JSONValue(parsing: String(line)) } }
    }
  }

  @Test(arguments: isComplete ? ["transform", "fan-out"] : ["transform"]) func itEndsWhileItWaitsForKafka(role: String) async throws {
    try await withRedis { redis in
      try await CarillonCommand.with { carillon in
        let process = try carillon.start(
          [role, "--kafka", "127.0.0.1:9", "--redis", redis.address.description, "--admin", "127.0.0.1:0", "--drain", "2s"])
        try await process.untilErrors(contain: "Redis answers")
        process.signal(SIGTERM)
        let result = try await process.result()
        #expect(result.status == 0, "it said: \(result.errors)")
      }
    }
  }

  @Test(.onlyInAll("KafkaTests have it, and ClusterTests audit workers that end"))
  func aTransformWorkerThatEndsHasCommittedWhatItHasFinished() async throws {
    try await WorkerPair.with { pair in
      try await pair.publish([WorkerPair.request("user:nobody")])
      // It is done with before the next commit is due, most probably.
      try await pair.eventually("it is judged") { try await pair.sum("carillon_transform_verdicts_total") == 1 }
      pair.transform.signal(SIGTERM)
      #expect(try await pair.transform.result().status == 0)
      let partition = TopicPartition(pair.prefix + "requests", 0)
      #expect(try await pair.kafka.admin.committed(group: pair.prefix + "transform", of: [partition]) == [partition: 1])
    }
  }

  @Test func aRedisThatEvictsIsRefused() async throws {
    try await CarillonCommand.with { carillon in
      try await withRedis(listening: .port(nil), settings: ["--maxmemory-policy", "allkeys-lru"]) { redis in
        let result = try await carillon.run(["transform", "--kafka", "127.0.0.1:9", "--redis", redis.address.description])
        #expect(result.status == 2)
        #expect(result.errors.contains("noeviction"))
      }
    }
  }

  @Test(arguments: [["transform"]] + (isComplete ? [["fan-out", "--listen", "127.0.0.1:0"]] : []))
  func aWorkerEndsAtARedisOfAnotherClusterAndNamesBoth(role: [String]) async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        try await withRedis(listening: .port(nil)) { redis in
          try await RedisProbe.with(redis.address) { _ = try await $0.command("HSET", "cluster", "kafka", "another", "prefix", "staging.") }
          let prefix = KafkaFixture.unique("foreign") + "."
          let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
          let created = try await carillon.run(["topics", "create", "--kafka", servers, "--topic-prefix", prefix, "--partitions", "4"])
          #expect(created.status == 0, "it said: \(created.errors)")
          let result = try await carillon.run(
            role + ["--kafka", servers, "--redis", redis.address.description, "--topic-prefix", prefix, "--json"])
          #expect(result.status == 2 && result.output.isEmpty, "it said: \(result.errors)\(result.output)")
          let own = try await kafka.admin.describeCluster().id ?? ""
          for name in ["the Kafka cluster another, and not \(own)", "--topic-prefix staging., and not \(prefix)"] {
            #expect(result.errors.contains(name), "no \(name): \(result.errors)")
          }
        }
      }
    }
  }

  @Test(.onlyInAll("it is about time: it goes on for half of its drain"))
  func aWorkerThatIsToldToEndLetsThoseInWhoHaveNotHeardOfIt() async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        try await withRedis(listening: .port(nil)) { redis in
          let prefix = KafkaFixture.unique("unready") + "."
          let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
          let created = try await carillon.run(["topics", "create", "--kafka", servers, "--topic-prefix", prefix, "--partitions", "4"])
          #expect(created.status == 0, "it said: \(created.errors)")
          let process = try carillon.start([
            "fan-out", "--listen", "127.0.0.1:0", "--kafka", servers, "--redis", redis.address.description, "--topic-prefix", prefix,
            "--json", "--drain", "120s", "--unready-for", "60s",
          ])
          let line = try JSONValue(parsing: try await process.firstLine())
          let admin = try #require(line["admin"]?.stringValue)
          let port = try #require(line["devices"]?.stringValue?.firstMatch(of: /:([0-9]+)\//).flatMap { Int($0.1) })
          process.signal(SIGTERM)
          await eventually("it is not ready") { try await get(admin + "/readyz").status == 503 }
          let device = try RawSocket(port: port)
          let upgrade = [
            "GET /v1/device HTTP/1.1", "Host: a", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol: carillon.v1",
          ]
          try device.send((upgrade + ["", ""]).joined(separator: "\r\n"))
          // It is closed when its hello does not come.
          let answer = String(decoding: try device.readToEnd(), as: UTF8.self)
          #expect(answer.hasPrefix("HTTP/1.1 101"), "it answered: \(answer.prefix(200))")
          let result = try await process.result()
          #expect(result.status == 0, "it said: \(result.errors)")
        }
      }
    }
  }

  @Test func readyRolesSayWhereTheyAreAndDrainAtSIGTERM() async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        try await withRedis(listening: .port(nil)) { redis in
          let prefix = KafkaFixture.unique("roles") + "."
          let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
          let created = try await carillon.run(["topics", "create", "--kafka", servers, "--topic-prefix", prefix, "--partitions", "4"])
          #expect(created.status == 0, "it said: \(created.errors)")
          let place = ["--kafka", servers, "--redis", redis.address.description, "--topic-prefix", prefix, "--json", "--lanes", "2"]
          let transform = try carillon.start(["transform"] + place + (kafka.embedded == nil ? [] : KafkaFixture.embeddedPoll))
          let fanOut = try carillon.start(["fan-out", "--listen", "127.0.0.1:0"] + place)
          let transformLine = try JSONValue(parsing: try await transform.firstLine())
          let fanOutLine = try JSONValue(parsing: try await fanOut.firstLine())
          let admin = try #require(transformLine["admin"]?.stringValue)
          #expect(try await get(admin + "/readyz").status == 200)
          #expect(try await get(admin + "/metrics").text.contains("carillon_build_info{version="))
          let devices = try #require(fanOutLine["devices"]?.stringValue)
          #expect(devices.wholeMatch(of: /ws:\/\/127\.0\.0\.1:[0-9]+\/v1\/device/) != nil)
          for process in [transform, fanOut] {
            process.signal(SIGTERM)
            let result = try await process.result()
            #expect(result.status == 0, "it said: \(result.errors)")
            #expect(result.lines.count == 1)
          }
        }
      }
    }
  }
}
