import EventLoop
import Glibc
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// One transform lane on an embedded broker and a Redis of its own, both of which a test may break.
actor TransformFixture {
  nonisolated let kafka: KafkaFixture
  nonisolated let redis: PrivateServer
  nonisolated let probe: RedisProbe
  nonisolated let topics: Topics
  nonisolated let health = Health()
  nonisolated let metrics = MetricRegistry()
  private nonisolated let settings: TransformSettings
  private nonisolated let lane: TransformLane

  static let application = "com.example.shop"
  /// So few that a test can tell a person's bucket from those of the devices.
  static let buckets = 4

  private init(
    _ kafka: KafkaFixture, _ redis: PrivateServer, _ probe: RedisProbe, partitions: Int32, sessionMilliseconds: Int,
    _ change: (inout TransformSettings) -> Void
  ) throws {
    (self.kafka, self.redis, self.probe) = (kafka, redis, probe)
    topics = Topics(prefix: KafkaFixture.unique("lane") + ".")
    for topic in topics.all { try kafka.embedded?.createTopic(topic, partitions: partitions) }
    var store = StoreConfiguration(redis.address, buckets: Self.buckets)
    // A machine that stands still for seconds must not look like a Redis that does.
    store.callDeadlineMilliseconds = hangMilliseconds
    let configuration = kafka.configuration.merging(["session.timeout.ms": String(sessionMilliseconds)])
    var settings = TransformSettings(topics: topics, kafka: configuration, store: store, cluster: "carillon", worker: "test")
    // The tests publish firings of hours that have not come.
    settings.clockToleranceMilliseconds = 1 << 60
    settings.group = topics.requests
    settings.askMilliseconds = 30_000
    change(&settings)
    self.settings = settings
    lane = TransformLane(
      settings, in: LanePlace(on: EventLoop(name: "lane"), logger: .silent, health: health), metrics: TransformMetrics(metrics))
  }

  /// Runs `body` beside a lane that has started, and drains it afterwards.
  ///
  /// - Parameters:
  ///   - change: other settings than the defaults.
  ///   - before: what is done to Redis before the lane starts.
  ///   - partitions: of each topic.
  ///   - awaitsReadiness: whether the lane is ready when `body` begins.
  ///   - real: makes the topics on the real Kafka, with these settings by topic.
  ///   - sessionMilliseconds: about so long the embedded broker takes to give a partition to another lane, which few tests want.
  static func with(
    _ change: @escaping @Sendable (inout TransformSettings) -> Void = { _ in },
    before: @Sendable (TransformFixture) async throws -> Void = { _ in }, partitions: Int32 = 1, sessionMilliseconds: Int = 60_000,
    real: (@Sendable (Topics) -> [String: [String: String]])? = nil, awaitsReadiness: Bool = true,
    _ body: @Sendable (TransformFixture) async throws -> Void
  ) async throws {
    try await KafkaFixture.with(embeddedOnly: real == nil) { kafka in
      try await withRedis { redis in
        try await RedisProbe.with(redis.address) { probe in
          let fixture = try TransformFixture(
            kafka, redis, probe, partitions: partitions, sessionMilliseconds: sessionMilliseconds, change)
          var failure: (any Error)?
          do {
            if let real { try await fixture.makeTopics(partitions: partitions, real(fixture.topics)) }
            try await before(fixture)
            try await fixture.start(awaitsReadiness: awaitsReadiness)
            try await body(fixture)
          } catch { failure = error }
          await fixture.drain(withinMilliseconds: 0)
          await fixture.lane.loop.close()
          if let failure { throw failure }
        }
      }
    }
  }

  private func makeTopics(partitions: Int32, _ settings: [String: [String: String]]) async throws {
    try await kafka.admin.ensureTopics(
      topics.all.map {
        TopicSpecification(
          $0, partitions: topics.partitions(of: $0, most: Int(partitions)) == 1 ? 1 : partitions,
          settings: topics.configuration(of: $0).merging(settings[$0] ?? [:]) { $1 })
      })
  }

  private func start(awaitsReadiness: Bool) async throws {
    let lane = lane
    _ = try await Task(executorPreference: lane.loop) { try await lane.start() }.value
    if awaitsReadiness { await eventually("the lane is ready") { self.health.isReady } }
  }

  /// Runs `body` beside further lanes of the same group, and gives it how they are.
  nonisolated func beside(_ count: Int, _ body: ([Health]) async throws -> Void) async throws {
    var failure: (any Error)?
    let healths = (0..<count).map { _ in Health() }
    let lanes = healths.map {
      TransformLane(
        settings, in: LanePlace(on: EventLoop(name: "further lane"), logger: .silent, health: $0),
        metrics: TransformMetrics(MetricRegistry()))
    }
    do {
      for lane in lanes { _ = try await Task(executorPreference: lane.loop) { try await lane.start() }.value }
      try await body(healths)
    } catch { failure = error }
    for lane in lanes {
      await Task(executorPreference: lane.loop) { await lane.drain(withinMilliseconds: 0) }.value
      await lane.loop.close()
    }
    if let failure { throw failure }
  }

  /// Ends the lane; a second time nothing happens.
  nonisolated func drain(withinMilliseconds milliseconds: Int) async {
    let lane = lane
    await Task(executorPreference: lane.loop) { await lane.drain(withinMilliseconds: milliseconds) }.value
  }

  /// Redis loses everything, and is rebuilt from Kafka; the lane is drained before.
  ///
  /// - Parameter progress: told what the rebuilding says of itself.
  @discardableResult
  func rebuild(_ progress: @escaping @Sendable (RebuildReport) -> Void = { _ in }) async throws -> RebuildReport {
    try await probe.command("FLUSHALL")
    let loop = EventLoop(name: "rebuild")
    let rebuilding = RebuildLane(settings, on: loop, logger: .silent)
    let result = await Task(executorPreference: loop) { try await rebuilding.run(progress: progress) }.result
    await loop.close()
    return try result.get()
  }

  /// The offsets that the journal says could not be read.
  func unreadableEntries() async throws -> [Range<Int64>] {
    let count = try await kafka.admin.ends(of: [TopicPartition(topics.journal, 0)]).values.first?.count ?? 0
    var stretches: [Range<Int64>] = []
    for record in try await kafka.records(of: topics.journal, count: count) {
      let headers = record.headers.map { ($0.name, String(decoding: $0.value ?? [], as: UTF8.self)) }
      try (record.value ?? []).withUnsafeBytes { value in
        try JournalRecord(headers: headers, value: value).forEachEntry(in: value, partition: 0) { entry in
          if case .unreadable(let count) = entry.content { stretches.append(entry.offset..<entry.offset + count) }
        }
      }
    }
    return stretches
  }

  /// The marker of a partition of `devices` or of the requests, which all buckets have.
  func marker(_ partition: MarkedPartition) async throws -> Marker? {
    var markers: Set<[UInt8]?> = []
    for bucket in 0..<Self.buckets {
      let reply = try await probe.command("HGET", .text(Self.keys.markers(bucket)), .text(partition.field))
      markers.insert(reply.bytes)
    }
    return markers.count == 1 ? markers.first?.flatMap { $0.withUnsafeBytes { Marker($0) } } : nil
  }

  // MARK: What is published

  /// Device tokens in their order, as many as wanted of each of these buckets, those of one bucket after those of the one before.
  nonisolated static func tokens(in wanted: [(bucket: Int, count: Int)]) -> [String] {
    var number = 0
    return wanted.flatMap { bucket, count in
      var tokens: [String] = []
      while tokens.count < count {
        number += 1
        let digits = String(number, radix: 16)
        let token = String(repeating: "0", count: 64 - digits.count) + digits
        if keys.bucket(of: token) == bucket { tokens.append(token) }
      }
      return tokens
    }
  }

  static let keys = Keys(buckets: buckets)

  /// Registers devices for a person, and waits until the group knows that Redis has them.
  ///
  /// - Parameter after: how many registrations there were before.
  func register(
    _ tokens: [String], for user: String, locales: [String: String] = [:], zones: [String: String] = [:], after: Int = 0
  ) async throws {
    try await publishRegistrations(tokens, for: user, locales: locales, zones: zones)
    await eventually("the group has committed the registrations") {
      try await self.committed(self.topics.devices) == Int64(after + tokens.count)
    }
  }

  /// Registers devices for a person, as far as Kafka is concerned.
  func publishRegistrations(
    _ tokens: [String], for user: String, locales: [String: String] = [:], zones: [String: String] = [:]
  ) async throws {
    let records = try tokens.map { token in
      let device = try #require(DeviceToken(token))
      var json = JSONWriter(capacity: 256)
      Registration(
        device: device, application: Name(Self.application), user: Name(user), since: 1, locale: locales[token], timeZone: zones[token]
      ).write(to: &json)
      return TestRecord(key: token, json.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }, partition: 0)
    }
    try await kafka.publish(records, to: topics.devices)
  }

  /// Publishes requests for a target, with a payload of about so many bytes.
  func request(
    _ target: String, count: Int = 1, bytes: Int = 20, collapse: String? = nil, isMutable: Bool = false
  ) async throws {
    var headers: [TestRecord.Header] = [.init("target", target), .init("apns-topic", Self.application)]
    if let collapse { headers.append(.init("apns-collapse-id", collapse)) }
    let record = TestRecord(
      key: target, #"{"aps":{"alert":"\#(String(repeating: "x", count: bytes))"\#(isMutable ? #","mutable-content":1"# : "")}}"#,
      headers: headers, partition: 0)
    try await kafka.publish(Array(repeating: record, count: count), to: topics.requests)
  }

  /// Publishes requests for a target with this payload.
  func request(
    _ target: String, payload: String, count: Int = 1, voip: Bool = false, id: String? = nil, collapse: String? = nil,
    partition: Int32 = 0
  ) async throws {
    var headers: [TestRecord.Header] = [.init("target", target), .init("apns-topic", Self.application + (voip ? ".voip" : ""))]
    if let id { headers.append(.init("apns-id", id)) }
    if let collapse { headers.append(.init("apns-collapse-id", collapse)) }
    if voip { headers.append(.init("apns-push-type", "voip")) }
    let record = TestRecord(key: target, payload, headers: headers, partition: partition)
    try await kafka.publish(Array(repeating: record, count: count), to: topics.requests)
  }

  /// Publishes a request once more, with where it was first and why it comes.
  func again(_ first: TestRecord, why purpose: Origin.Purpose) async throws {
    var json = JSONWriter()
    let source = SourceCoordinates(topic: topics.requests, partition: 0, offset: first.offset ?? -1, timestamp: first.timestamp ?? -1)
    Origin.write(cluster: settings.cluster, source, why: purpose, to: &json)
    var record = first
    record.headers.append(.init(RequestHeader.origin.name.description, json.text))
    try await kafka.publish([record], to: topics.requests)
  }

  // MARK: What there is

  /// The offset that the group has committed of a topic's partition.
  func committed(_ topic: String) async throws -> Int64 {
    try await kafka.admin.committedWithNotes(group: settings.group, of: [TopicPartition(topic, 0)]).values.first?.offset ?? 0
  }

  /// The sum of the offsets that the group has committed of partitions.
  func committedEnds(of partitions: [TopicPartition]) async throws -> Int64 {
    try await kafka.admin.committedWithNotes(group: settings.group, of: partitions).values.reduce(0) { $0 + $1.offset }
  }

  /// A metric's value, by its name with labels as `/metrics` shows it.
  nonisolated func metric(_ name: String) -> Double {
    metrics.text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap { Double($0.dropFirst(name.count + 1)) } ?? 0
  }

  /// The metrics that are not 0, which say where a lane stands that does not come to its end.
  private nonisolated var movedMetrics: String {
    let lines = metrics.text.split(separator: "\n").filter { !$0.hasPrefix("#") && !$0.contains("_bucket{") && !$0.hasSuffix(" 0") }
    return lines.joined(separator: "; ")
  }

  /// How many requests are taken.
  nonisolated var taken: Int { Int(metric("carillon_transform_requests_total")) }

  /// How many requests ended so.
  nonisolated func count(_ verdict: RecordVerdict) -> Int {
    verdict.label(isRegistration: false).map { Int(metric("\(MetricNames.verdicts.name){verdict=\"\($0)\"}")) } ?? 0
  }

  /// How many requests ended so.
  nonisolated func count(_ outcome: Outcome) -> Int { count(.request(outcome)) }

  /// Entries in a device's mailbox.
  func waiting(_ token: String) async throws -> Int {
    guard case .integer(let count) = try await probe.command("HLEN", .text(Self.keys.mailbox(token))) else { return 0 }
    return Int(count)
  }

  /// How often Redis was asked for its settings, some times in each inspection.
  func looks() async throws -> Int {
    let calls = try await probe.calls
    // Before Redis 7 the subcommands are counted together.
    return calls["config|get"] ?? calls["config"] ?? 0
  }

  /// Keys that Redis has thrown away.
  func evicted() async throws -> Int {
    let statistics = try await probe.command("INFO", "stats").text ?? ""
    return statistics.firstMatch(of: /evicted_keys:(\d+)/).flatMap { Int($0.1) } ?? 0
  }

  /// Since when Redis is found to be as it is: another time when it was found otherwise meanwhile.
  nonisolated var redisSince: String? {
    health.json.firstMatch(of: /"name":"redis","ready":true,"since":"([^"]+)"/).map { String($0.1) }
  }

  /// How many scripts Redis has run.
  func calls() async throws -> Int { try await calls(of: "evalsha") }

  private func calls(of command: String) async throws -> Int { try await probe.calls[command] ?? 0 }

  // MARK: What is broken

  /// Redis loses a bucket, until it is put back.
  func lose(_ bucket: Int) async throws {
    try await probe.command("RENAME", .text(Self.keys.markers(bucket)), "lost")
  }

  /// Puts a bucket back that was lost.
  func putBack(_ bucket: Int) async throws {
    try await probe.command("RENAME", "lost", .text(Self.keys.markers(bucket)))
  }

  /// Puts a bucket back, and another worker has raised the requests' marker meanwhile.
  func putBack(_ bucket: Int, andMark marker: Marker) async throws {
    let script = "redis.call('RENAME', 'lost', KEYS[1]) for i = 0, ARGV[2] - 1 do redis.call('HSET', 'k{' .. i .. '}', 'q0', ARGV[1]) end"
    try await probe.command("EVAL", .text(script), 1, .text(Self.keys.markers(bucket)), .bytes(marker.bytes), .integer(Int64(Self.buckets)))
  }

  /// A device is connected to a fan-out lane.
  func connect(_ token: String, partition: Int32 = 0) async throws {
    try await probe.command("HSET", .text(Self.keys.device(token)), "p", .bytes(Presence(partition: partition, generation: 1).bytes))
  }

  /// Runs `body` while Redis stands still.
  func whileRedisStandsStill(_ body: () async throws -> Void) async throws {
    let pid = try #require(await redis.pid)
    kill(pid, SIGSTOP)
    defer { kill(pid, SIGCONT) }
    try await body()
  }

  // MARK: Waiting

  /// Waits until a number is the same in many looks. It may grow later: only what must hold at any time is expected behind it.
  nonisolated func settled(_ number: () async throws -> Int) async throws {
    var (last, looks) = (-1, 0)
    while looks < 50 {
      let now = try await number()
      (last, looks) = (now, now == last ? looks + 1 : 0)
      await pause()
    }
  }

  /// Waits until a condition holds, and says so when it does not.
  nonisolated func eventually(
    _ what: String, _ location: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
  ) async {
    await TestSupport.eventually("\(what); the lane: \(health.json) \(movedMetrics)", location, condition)
  }
}

extension TestRecord {
  /// The device that a delivery is for.
  var device: String? { key.flatMap { key in key.withUnsafeBytes { DeviceToken(packed: $0)?.text } } }
}
