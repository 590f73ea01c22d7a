import Foundation
import FoundationNetworking
import JSON
import Kafka
import Redis
import TestSupport
import Testing

/// One transform worker and one fan-out worker as processes, on topics and a Redis of their own that a test can tamper with.
struct WorkerPair: Sendable {
  static let application = "com.example.shop"

  let carillon: CarillonCommand
  let kafka: KafkaFixture
  let redis: RedisProbe
  let prefix: String
  let flags: [String]
  /// Where Redis is.
  let redisAddress: String
  let transform: RunningCommand
  let fanOut: RunningCommand
  private let admins: [String]
  private let devices: String

  /// Gives `body` the workers when they are ready, and ends them.
  static func with(transform: [String] = [], fanOut: [String] = [], _ body: @Sendable (WorkerPair) async throws -> Void) async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        try await withRedis(listening: .port(nil)) { server in
          try await RedisProbe.with(server.address) { redis in
            let prefix = KafkaFixture.unique("pair") + "."
            let flags = ["--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--topic-prefix", prefix]
            let created = try await carillon.run(["topics", "create", "--partitions", "4"] + flags)
            #expect(created.status == 0, "it said: \(created.errors)")
            let place = flags + ["--redis", server.address.description, "--json"]
            // A machine that stands still costs the worker no partition, whose records would count twice.
            let session = transform.contains("--session-timeout") ? [] : ["--session-timeout", "5m"]
            let workers = [
              try carillon.start(["transform", "--group", prefix + "transform"] + place + session + transform),
              try carillon.start(["fan-out", "--listen", "127.0.0.1:0"] + place + fanOut),
            ]
            var lines: [JSONValue] = []
            for worker in workers { lines.append(try JSONValue(parsing: try await worker.firstLine())) }
            try await body(
              WorkerPair(
                carillon: carillon, kafka: kafka, redis: redis, prefix: prefix, flags: flags, redisAddress: server.address.description,
                transform: workers[0], fanOut: workers[1],
                admins: lines.compactMap { $0["admin"]?.stringValue }, devices: lines[at: 1]?["devices"]?.stringValue ?? ""))
            await carillon.end()
          }
        }
      }
    }
  }

  // MARK: Kafka

  /// A request to a target, with these headers further or in place of the plain ones.
  static func request(_ target: String, _ headers: [String: String] = [:], _ value: String = #"{"aps":{"alert":"x"}}"#) -> TestRecord {
    let all = ["target": target, "apns-topic": application].merging(headers) { $1 }
    return TestRecord(key: target, value, headers: all.sorted { $0.key < $1.key }.map { .init($0.key, $0.value) }, partition: 0)
  }

  func publish(_ requests: [TestRecord]) async throws { try await kafka.publish(requests, to: prefix + "requests") }

  /// Registers a device as its lane would, and waits until the registry has it.
  func register(_ token: String, user: String) async throws {
    let value = #"{"device":"\#(token)","application":"\#(Self.application)","user":"\#(user)","since":1700000000000}"#
    try await kafka.publish([TestRecord(key: token, value, partition: 0)], to: prefix + "devices")
    // The last thing that is written for it.
    try await eventually("\(token) is registered") {
      try await redis.command("ZSCORE", .text(try await key("u", "\(Self.application)/\(user)")), .text(token)) != .null
    }
  }

  /// All events so far, as the tool prints them.
  func events() async throws -> [JSONValue] {
    let result = try await carillon.run(["events", "--from", "beginning", "--until-idle", "1s", "--json"] + flags)
    return try result.lines.map { try JSONValue(parsing: $0) }
  }

  // MARK: Redis

  /// The one key with this kind and name: `m` and a token for a mailbox.
  func key(_ kind: String, _ name: String) async throws -> String {
    try await redis.command("KEYS", .text("\(kind){*}\(name)")).array?.first?.text ?? "absent"
  }

  /// The field and the bytes of the entry of a request in a mailbox.
  func entry(_ id: String, in mailbox: String) async throws -> (field: [UInt8], bytes: [UInt8]) {
    let digits = Array(id.filter { $0 != "-" })
    let prefix = stride(from: 0, to: 32, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    let all = try await redis.command("HGETALL", .text(mailbox)).array?.compactMap(\.bytes) ?? []
    let index = try #require(stride(from: 0, to: all.count - 1, by: 2).first { all[$0 + 1].starts(with: prefix) })
    return (all[index], all[index + 1])
  }

  // MARK: Devices

  func device(_ token: String, user: String) throws -> RunningCommand {
    try carillon.start(
      ["device", "--devices", devices, "--token", token, "--app", Self.application, "--user", user, "--json"])
  }

  /// The ids that a device has shown.
  func shown(by device: RunningCommand) -> Set<String> {
    Set(
      device.outputSoFar.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }
        .filter { $0["event"] == "shown" }.compactMap { $0["id"]?.stringValue })
  }

  // MARK: Metrics

  /// The metrics of the workers: name with labels, and value.
  func metrics() async throws -> [String: Double] {
    var all: [String: Double] = [:]
    for admin in admins {
      let (data, _) = try await URLSession.shared.data(from: try #require(URL(string: admin + "/metrics")))
      for line in String(decoding: data, as: UTF8.self).split(separator: "\n") where !line.hasPrefix("#") {
        guard let space = line.lastIndex(of: " ") else { continue }
        all[String(line[..<space]), default: 0] += Double(line[line.index(after: space)...]) ?? 0
      }
    }
    return all
  }

  /// The sum of a metric over all values of its labels.
  func sum(_ name: String) async throws -> Double { Self.sum(name, of: try await metrics()) }

  /// The same, of what was read before.
  static func sum(_ name: String, of metrics: [String: Double]) -> Double {
    metrics.filter { $0.key == name || $0.key.hasPrefix(name + "{") }.values.reduce(0, +)
  }

  /// Waits until something holds; ends the test when it never does.
  func eventually(
    _ what: String, _ location: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
  ) async throws {
    let holds = await TestSupport.eventually("\(what)\n\(transform.errorsSoFar)\n\(fanOut.errorsSoFar)", location, condition)
    if !holds { throw ClusterFailure("never: \(what)") }
  }
}
