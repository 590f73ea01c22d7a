import Foundation
import FoundationNetworking
import JSON
import Kafka
import Redis
import TestSupport
import Testing

/// A client of Kafka that has failed for good ends its lane, and only when that happens again and again the process.
@Suite(.onlyInAll("it is about time: the broker's sessions end; LaneHostTests have when a lane starts again")) struct LaneRestartTests {
  private static let ada = String(repeating: "ad", count: 32)
  private static let bob = String(repeating: "b0", count: 32)
  private static let carol = String(repeating: "ca", count: 32)

  /// Both roles on an embedded broker, which fails what it is told to.
  private struct Cluster: Sendable {
    let carillon: CarillonCommand
    let kafka: KafkaFixture
    let flags: [String]
    let redis: String

    private static let sessionSeconds = 10

    /// Starts a transform worker, and answers when it is ready.
    func transform() async throws -> (process: RunningCommand, places: JSONValue) {
      // The embedded broker never answers a member whose session ends while it waits to join: it joins again after the poll interval.
      let times = [
        "--kafka.session.timeout.ms", "\(Self.sessionSeconds)000", "--kafka.max.poll.interval.ms", "\(2 * Self.sessionSeconds)000",
      ]
      return try await worker(["transform"] + times)
    }

    /// Starts a fan-out worker, and answers when it is ready.
    func fanOut() async throws -> (process: RunningCommand, places: JSONValue) { try await worker(["fan-out", "--listen", "127.0.0.1:0"]) }

    private func worker(_ role: [String]) async throws -> (process: RunningCommand, places: JSONValue) {
      let process = try carillon.start(role + flags + ["--redis", redis, "--json"])
      return (process, try JSONValue(parsing: try await process.firstLine()))
    }

    func device(_ token: String, user: String, of worker: JSONValue) throws -> RunningCommand {
      let devices = try #require(worker["devices"]?.stringValue)
      return try carillon.start(
        ["device", "--devices", devices, "--token", token, "--app", WorkerPair.application, "--user", user, "--json"])
    }

    /// Publishes a request with one request to Kafka, and answers its id.
    func publish(to user: String) async throws -> String {
      let id = UUID().uuidString.lowercased()
      try await kafka.publish([WorkerPair.request("user:\(user)", ["apns-id": id])], to: "notifications.requests")
      return id
    }

    /// The group takes the lane for a member whose name another one has by now, after which its client can do nothing any more; until then
    /// none of its writes succeeds, but for the first of all. Its next client may join when the group has forgotten it, for the embedded
    /// broker may give a member the id of another.
    func fence() async throws -> String {
      let notLeader = KafkaError.Code(rawValue: 6)
      try kafka.embedded?.failNext(.produce, with: [.init(rawValue: 0)] + Array(repeating: notLeader, count: 1_000))
      let id = try await publish(to: "ada")
      try kafka.embedded?.failNext(.joinGroup, with: Array(repeating: .init(rawValue: 14), count: 1_000))
      try kafka.embedded?.failNext(.heartbeat, with: [.fencedInstance])
      return id
    }

    /// Lets members join again when the session of the fenced one has ended, which the broker looks for once a second.
    func untilForgotten() async throws {
      // A machine that stood still for one long pause would let them join before the broker has looked.
      for _ in 0..<(Self.sessionSeconds + 5) * 200 { await pause() }
      try kafka.embedded?.clearFailures(of: .joinGroup)
    }

    /// The next writes to Kafka fail so that their clients can do nothing any more, but for the first ones.
    func fail(_ count: Int, after passing: Int) throws {
      let outOfOrder = KafkaError.Code(rawValue: 45)
      let codes = Array(repeating: .init(rawValue: 0), count: passing) + Array(repeating: outOfOrder, count: count)
      try kafka.embedded?.failNext(.produce, with: codes)
    }

    /// Waits for the log to say that a lane starts again for that time, from when on nothing fails.
    func untilRestart(_ number: Int, of worker: RunningCommand) async throws {
      try await worker.untilErrors(contain: "restart=\(number) maximum=3 withinSeconds=300")
      try kafka.embedded?.clearFailures(of: .produce)
    }

    /// Waits until so many requests are done with, and those were delivered: then nobody writes to Kafka any more.
    func untilDone(_ requests: Int, delivered ids: [String]) async throws {
      let requestsPartition = TopicPartition("notifications.requests", 0)
      try await eventually("\(requests) requests are done with") {
        try await kafka.admin.committed(group: "carillon-transform", of: [requestsPartition])[requestsPartition] == Int64(requests)
      }
      try await eventually("\(ids) are delivered") {
        let events = try await carillon.run(
          ["events", "--from", "beginning", "--type", "delivered", "--until-idle", "300ms", "--json"] + flags)
        return ids.allSatisfy { events.output.contains($0) }
      }
    }

    /// Audits until it finds nothing.
    func audit() async throws {
      var said = ""
      try await eventually("the audit finds nothing", said: { said }) {
        let result = try await carillon.run(["audit", "--grace", "0", "--no-pending"] + flags)
        said = result.output + result.errors
        return result.status == 0
      }
    }

    func eventually(_ what: String, said: () -> String = { "" }, _ condition: () async throws -> Bool) async throws {
      let holds = await TestSupport.eventually("\(what)\n\(said())") { try await condition() }
      if !holds { throw ClusterFailure("never: \(what)") }
    }
  }

  private func withCluster(_ body: @Sendable (Cluster) async throws -> Void) async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with(embeddedOnly: true) { kafka in
        try await withRedis { redis in
          for name in ["requests", "deliveries", "devices", "events", "journal", "dead-letters", "applications", "people", "categories"] {
            try kafka.embedded?.createTopic("notifications.\(name)", partitions: 1)
          }
          let flags = ["--kafka", kafka.configuration.bootstrapServers.joined(separator: ",")]
          try await body(Cluster(carillon: carillon, kafka: kafka, flags: flags, redis: redis.address.description))
          await carillon.end()
        }
      }
    }
  }

  /// The ids of what a device has shown, in their order.
  private func shown(by device: RunningCommand) -> [String] {
    device.outputSoFar.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }
      .filter { $0["event"] == "shown" }.compactMap { $0["id"]?.stringValue }
  }

  private func get(_ worker: JSONValue, _ path: String) async throws -> String {
    let admin = try #require(worker["admin"]?.stringValue)
    let url = try #require(URL(string: admin + path))
    return String(decoding: try await URLSession.shared.data(from: url).0, as: UTF8.self)
  }

  @Test func aTransformLaneStartsAgainThreeTimesBeforeItsProcessEndsAndLosesNothing() async throws {
    try await withCluster { cluster in
      let transform = try await cluster.transform()
      let fanOut = try await cluster.fanOut()
      let device = try cluster.device(Self.ada, user: "ada", of: fanOut.places)
      try await device.until("connected")
      var ids = [try await cluster.publish(to: "ada")]
      try await cluster.untilDone(1, delivered: ids)
      for time in 1...3 {
        // Kafka has the request, and neither its delivery nor what is told of it.
        ids.append(try await cluster.fence())
        try await cluster.untilRestart(time, of: transform.process)
        try await cluster.untilForgotten()
        ids.append(try await cluster.publish(to: "ada"))
        try await cluster.untilDone(ids.count, delivered: ids)
      }
      #expect(try await get(transform.places, "/metrics").contains("carillon_lane_restarts_total 3\n"))
      #expect(try await get(transform.places, "/readyz").contains(#"{"ready":true"#))

      ids.append(try await cluster.fence())
      let result = try await transform.process.result()
      #expect(result.status == 3 && result.errors.contains("Static consumer fenced"), "\(result.status): \(result.errors)")
      try cluster.kafka.embedded?.clearFailures(of: .produce)
      try await cluster.untilForgotten()

      _ = try await cluster.transform()
      try await cluster.untilDone(ids.count, delivered: ids)
      #expect(shown(by: device).sorted() == ids.sorted())
      try await cluster.audit()
    }
  }

  @Test func aFanOutLaneStartsAgainAtItsAddressAndItsDevicesMissNothing() async throws {
    try await withCluster { cluster in
      _ = try await cluster.transform()
      let fanOut = try await cluster.fanOut()
      let ada = try cluster.device(Self.ada, user: "ada", of: fanOut.places)
      try await ada.until("connected")
      var ids = [try await cluster.publish(to: "ada")]
      try await cluster.untilDone(1, delivered: ids)

      // The only write is that of the new device's registration.
      try cluster.fail(1, after: 0)
      let bob = try cluster.device(Self.bob, user: "bob", of: fanOut.places)
      try await cluster.untilRestart(1, of: fanOut.process)
      ids.append(try await cluster.publish(to: "ada"))
      try await bob.until("connected")
      let other = try await cluster.publish(to: "bob")
      ids.append(try await cluster.publish(to: "ada"))
      try await cluster.untilDone(4, delivered: ids + [other])
      #expect(shown(by: ada).sorted() == ids.sorted())
      #expect(shown(by: bob) == [other])
      #expect(ada.outputSoFar.contains(#""reason":"draining""#), "it said: \(ada.outputSoFar)")
      try await cluster.audit()

      // A lane that is about to start again ends as any other.
      try cluster.fail(1, after: 0)
      let carol = try cluster.device(Self.carol, user: "carol", of: fanOut.places)
      try await cluster.untilRestart(2, of: fanOut.process)
      fanOut.process.signal(SIGTERM)
      let result = try await fanOut.process.result()
      #expect(result.status == 0, "it said: \(result.errors)")
      for device in [ada, bob, carol] { device.signal(SIGKILL) }
    }
  }
}

extension RunningCommand {
  /// Waits until a device has said that something has happened to it.
  fileprivate func until(_ event: String) async throws { try await untilOutput(contains: #""event":"\#(event)""#) }
}
