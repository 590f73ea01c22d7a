import EventLoop
import JSON
import Kafka
import Notifications
import Synchronization
import TestSupport
import Testing
import Worker

@testable import Operations

/// Replays of what lies in Kafka.
@Suite struct ReplayToolTests {
  private struct Cluster: Sendable {
    let kafka: KafkaFixture
    let topics: Topics
    static let partitions = 3

    enum Ending {
      case complete(RunReport)
      case stopped(RunReport)
      case failed(any Error, RunReport)
    }

    init(_ kafka: KafkaFixture, settings: [String: String] = [:]) async throws {
      self.kafka = kafka
      topics = Topics(prefix: KafkaFixture.unique("replayed") + ".")
      for topic in [topics.requests, topics.events] {
        if let embedded = kafka.embedded { try embedded.createTopic(topic, partitions: Int32(Self.partitions)) }
        try await kafka.admin.ensureTopics([TopicSpecification(topic, partitions: Int32(Self.partitions), settings: settings)])
      }
    }

    func publish(_ count: Int) async throws {
      let records = (0..<count).map { number in
        TestRecord(
          key: "user:u\(number % 5)", #"{"aps":{"alert":"x"},"order":{"id":\#(number % 10)}}"#,
          headers: [
            .init("target", "user:u\(number % 5)"), .init("apns-topic", number % 4 == 0 ? "com.example.shop" : "com.example.news"),
            .init("apns-collapse-id", "c\(number % 3)"),
          ], partition: Int32(number % Self.partitions))
      }
      try await kafka.publish(records, to: topics.requests)
    }

    func plan(_ change: (inout ReplaySelection) -> Void = { _ in }) async throws -> ReplayPlan {
      var selection = ReplaySelection()
      change(&selection)
      return try await ReplayPlan(selection, of: topics.requests, run: "abc", cluster: "carillon", kafka.admin)
    }

    /// Replays, and says how that has ended.
    func replay(
      _ plan: ReplayPlan, isResumed: Bool = false, _ settings: RunSettings = RunSettings(), properties: [String: String] = [:],
      save: @escaping @Sendable (ReplayPlan) throws -> Void = { _ in }, _ body: (RunStop) async -> Void = { _ in }
    ) async throws -> Ending {
      let loop = EventLoop(name: "replay-test")
      let configuration = kafka.configuration.merging(properties)
      let (tool, stop) = (ClusterTool(on: loop, configuration, RequestRules(topics: topics)), RunStop())
      async let report = tool.replay(plan, isResumed: isResumed, settings, stop, save: save)
      await body(stop)
      let result = try await report
      await loop.close()
      if let failure = result.failure { return .failed(failure, result) }
      return result.isComplete ? .complete(result) : .stopped(result)
    }

    /// The records of a topic, each partition's in its order.
    func records(count: Int) async throws -> [Int32: [TestRecord]] {
      Dictionary(grouping: try await kafka.records(of: topics.requests, count: count)) { $0.partition ?? -1 }
        .mapValues { $0.sorted { ($0.offset ?? 0) < ($1.offset ?? 0) } }
    }
  }

  private static func text(_ record: TestRecord, _ name: String) -> String? {
    record.headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test func requestsComeAgainInTheirPartitionsAndOrderWithTheirFirstPlace() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka)
      try await cluster.publish(60)
      guard case .complete(let plan) = try await cluster.replay(cluster.plan()) else {
        Issue.record("it is not complete")
        return
      }
      #expect(plan.counts[.written] == 60)
      for (partition, records) in try await cluster.records(count: 120) {
        #expect(records.count == 40)
        for (first, again) in zip(records.prefix(20), records.suffix(20)) {
          #expect((again.key, again.value) == (first.key, first.value))
          let origin = try #require(Self.text(again, "carillon-origin"))
          Array(origin.utf8).withUnsafeBytes { bytes in
            guard let read = Origin(bytes) else {
              Issue.record("no origin: \(origin)")
              return
            }
            #expect(read.purpose == .replay)
            #expect(read.position == SourcePosition(partition: partition, offset: first.offset ?? -1, timestamp: first.timestamp ?? -1))
          }
          #expect(Self.text(again, "carillon-replay") == "abc/\(first.offset ?? -1)")
          #expect(again.headers.dropLast(2) == first.headers[...])
        }
      }
      // What a replay wrote is not replayed.
      guard case .complete(let second) = try await cluster.replay(cluster.plan()) else { return }
      #expect((second.counts[.written], second.counts[.ofReplays]) == (60, 60))
    }
  }

  @Test func `schedules and their occurrences are not published as new requests`() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka)
      let due = #"{"type":"timeInterval","timeInterval":600}"#
      let firing = #"{"schedule":"x","id":"x"}"#
      let place = #"{"type":"location","latitude":1,"longitude":1,"radius":100}"#
      let kinds = [[], [("trigger", due)], [("carillon-firing", firing)], [("Carillon-Firing", "")], [("trigger", place)]]
      let records = kinds.map { headers in
        TestRecord(
          key: "user:ada", #"{"aps":{"alert":"x"}}"#,
          headers: [.init("target", "user:ada"), .init("apns-topic", "a")] + headers.map { .init($0.0, $0.1) }, partition: 0)
      }
      try await kafka.publish(records, to: cluster.topics.requests)
      let saved = Mutex<ReplayPlan?>(nil)
      guard
        case .complete(let plan) = try await cluster.replay(
          cluster.plan { $0.isNew = true }, save: { plan in saved.withLock { $0 = plan } })
      else {
        Issue.record("it is not complete")
        return
      }
      #expect(plan.counts[.ofSchedules] == 3 && plan.counts[.written] == 2 && plan.counts.read == 5)
      let written = try await cluster.records(count: 7)[0]?.suffix(2).map { Self.text($0, "trigger") }
      #expect(written == [nil, place])
      let text = saved.withLock { $0?.json.text ?? "" }
      #expect(try ReplayPlan(Array(text.utf8)).counts == plan.counts, "the file keeps the count")
      guard case .complete(let replay) = try await cluster.replay(cluster.plan()) else { return }
      #expect(replay.counts[.written] == 5, "a replay repeats them as they were")
    }
  }

  @Test func `an origin is replaced whatever the case of its name`() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka)
      try await cluster.publish(3)
      let origin =
        #"{"cluster":"carillon","topic":"\#(cluster.topics.requests)","partition":0,"offset":0,"timestamp":1,"why":"redrive"}"#
      let headers: [TestRecord.Header] = [.init("target", "user:ada"), .init("apns-topic", "a"), .init("Carillon-Origin", origin)]
      let again = TestRecord(key: "user:ada", #"{"aps":{"alert":"x"}}"#, headers: headers, partition: 0)
      try await kafka.publish([again], to: cluster.topics.requests)
      guard case .complete(let plan) = try await cluster.replay(cluster.plan()) else {
        Issue.record("it is not complete")
        return
      }
      #expect(plan.counts[.written] == 4)
      let last = try #require(try await cluster.records(count: 8)[0]?.last)
      let origins = last.headers.filter { $0.name.lowercased() == "carillon-origin" }
      #expect(origins.map(\.name) == ["carillon-origin"])
      #expect(Self.text(last, "carillon-origin")?.contains(#""offset":0,"timestamp":1,"why":"replay""#) == true)
    }
  }

  @Test func `a replay whose batch is refused ends, and goes on where it was`() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let cluster = try await Cluster(kafka)
      try await cluster.publish(60)
      try kafka.embedded?.failNext(.produce, with: [.messageTooLarge])
      let first = try await cluster.plan()
      guard case .failed(let error, _) = try await cluster.replay(first) else {
        Issue.record("it has not failed")
        return
      }
      #expect((error as? KafkaError)?.code == .messageTooLarge)
      let ending = try await cluster.replay(first, isResumed: true)
      guard case .complete(let rest) = ending else {
        Issue.record("it is not complete: \(ending)")
        return
      }
      #expect(rest.counts[.written] == 60)
      for records in try await cluster.records(count: 120).values {
        let written = records.suffix(20).compactMap { Self.text($0, "carillon-replay") }
        #expect(written == (0..<20).map { "abc/\($0)" }, "each once, and in its order")
      }
    }
  }

  @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
  func `a replay makes no batch that its topic does not take`() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka, settings: ["max.message.bytes": "16384"])
      for _ in 0..<20 { try await cluster.publish(60) }
      var settings = RunSettings()
      settings.limits = try await kafka.admin.writeLimits(of: [cluster.topics.requests])
      guard case .complete(let plan) = try await cluster.replay(cluster.plan(), settings) else {
        Issue.record("it is not complete")
        return
      }
      #expect(plan.counts[.written] == 1_200 && plan.counts[.tooLarge] == 0)
      guard case .failed = try await cluster.replay(cluster.plan()) else {
        Issue.record("the batches would have been small enough anyway")
        return
      }
    }
  }

  /// A broker that does not know the producer yet would take any record as its first, and what follows would hide the hole from who goes on.
  @Test func nothingIsWrittenBeforeARecordThatKafkaHasRefusedAtFirst() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let cluster = try await Cluster(kafka)
      try await cluster.publish(15)
      // So that several would wait for their answers at once.
      try kafka.embedded?.setRoundTrip(milliseconds: 200)
      try kafka.embedded?.failNext(.produce, with: Array(repeating: .init(rawValue: 7), count: Cluster.partitions))
      let singly = ["batch.num.messages": "1", "linger.ms": "0", "retry.backoff.ms": "200"]
      guard case .complete(let plan) = try await cluster.replay(cluster.plan(), properties: singly) else {
        Issue.record("it is not complete")
        return
      }
      #expect(plan.counts[.written] == 15)
      for (_, records) in try await cluster.records(count: 30) {
        #expect(records.suffix(5).map(\.value) == records.prefix(5).map(\.value))
        #expect(records.suffix(5).map(\.key) == records.prefix(5).map(\.key))
      }
    }
  }

  @Test func theConditionsSayWhichRequestsAreMeant() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka)
      try await cluster.publish(60)
      var settings = RunSettings()
      settings.isDryRun = true
      func count(_ change: (inout ReplaySelection) -> Void) async throws -> Int {
        guard case .complete(let plan) = try await cluster.replay(cluster.plan(change), settings) else { return -1 }
        return plan.counts[.written]
      }
      #expect(try await count { $0.filter[.application] = "com.example.shop" } == 15)
      #expect(try await count { $0.filter[.target] = "user:u1" } == 12)
      #expect(try await count { $0.filter[.collapseID] = "c2" } == 20)
      #expect(try await count { $0.partitions = [1] } == 20)
      #expect(try await count { $0.offsets = [1: 5..<8, 2: 0..<1] } == 4)
      #expect(try await count { $0.published.to = 5 } == 0)
      #expect(
        try await kafka.admin.ends(of: [TopicPartition(cluster.topics.requests, 0)]).values.first?.upperBound == 20, "nothing is written")
      await #expect(throws: ReplayRefusal.noPartition(TopicPartition(cluster.topics.requests, 7), count: 3)) {
        _ = try await cluster.plan { $0.partitions = [7] }
      }
      await #expect(throws: ReplayRefusal.notYetThere(TopicPartition(cluster.topics.requests, 1), wanted: 5..<21, end: 20)) {
        _ = try await cluster.plan { $0.offsets = [1: 5..<21] }
      }
    }
  }

  @Test func whoGoesOnAfterAnInterruptionWritesTheRestOnce() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka)
      try await cluster.publish(900)
      var slow = RunSettings()
      slow.recordsPerSecond = 30
      let first = try await cluster.plan()
      let isUnderWay = Mutex(false)
      let ending = try await cluster.replay(
        first, slow, save: { plan in if plan.counts[.written] > 0 { isUnderWay.withLock { $0 = true } } }
      ) { stop in
        await eventually("it is under way") { isUnderWay.withLock { $0 } }
        stop.stop()
      }
      guard case .stopped(let plan) = ending else {
        Issue.record("it did not stop: \(ending)")
        return
      }
      #expect(plan.counts[.written] > 0 && plan.counts[.written] < 900)
      // As if nothing had been saved since the beginning.
      guard case .complete(let second) = try await cluster.replay(first, isResumed: true) else {
        Issue.record("it is not complete")
        return
      }
      #expect(second.counts[.written] == 900)
      for (_, records) in try await cluster.records(count: 1_800) {
        let names = records.compactMap { Self.text($0, "carillon-replay") }
        #expect(names == (0..<300).map { "abc/\($0)" })
      }
    }
  }

  @Test func whatCannotBeSavedStopsItAndLosesNothing() async throws {
    struct DiskIsFull: Error {}
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka)
      try await cluster.publish(600)
      var slow = RunSettings()
      slow.recordsPerSecond = 200
      let saves = Mutex(0)
      let plan = try await cluster.plan()
      let ending = try await cluster.replay(
        plan, slow,
        save: { _ in
          if saves.withLock({
            $0 += 1; return $0 > 1
          }) {
            throw DiskIsFull()
          }
        })
      guard case .failed(let error, _) = ending else {
        Issue.record("it did not fail: \(ending)")
        return
      }
      #expect(error is DiskIsFull)
      guard case .complete(let second) = try await cluster.replay(plan, isResumed: true) else { return }
      #expect(second.counts[.written] == 600)
      _ = try await cluster.records(count: 1_200)
    }
  }

  @Test func `what has expired and what breaks a rule is counted`() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka)
      func request(_ headers: [String: String]) -> TestRecord {
        let sorted = headers.sorted { $0.key < $1.key }.map { TestRecord.Header($0.key, $0.value) }
        return TestRecord(key: "user:ada", #"{"aps":{"alert":"x"}}"#, headers: sorted, partition: 0)
      }
      let good = ["apns-topic": "a.b"]
      try await kafka.publish(
        [request(good), request(good.merging(["apns-expiration": "1"]) { $1 }), request([:]), request(good)], to: cluster.topics.requests)
      var settings = RunSettings()
      settings.isDryRun = true
      guard case .complete(let plan) = try await cluster.replay(cluster.plan(), settings) else {
        Issue.record("it is not complete")
        return
      }
      let counts = plan.counts
      #expect((counts[.written], counts[.expired], counts[.rejected], counts[.applied]) == (4, 1, 1, 0))
      #expect(counts.mayHaveEffect == 2)
    }
  }

  @Test func `requests that come as new have another id and no first place, and the same id however often they are written`() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka)
      let origin =
        #"{"cluster":"carillon","topic":"\#(cluster.topics.requests)","partition":0,"offset":0,"timestamp":1,"why":"redrive"}"#
      let first = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
      let headers: [TestRecord.Header] = [
        .init("target", "user:ada"), .init("APNS-ID", first), .init("apns-topic", "a.b"), .init("Carillon-Origin", origin),
        .init("mine", "1"), .init("mine", "2"),
      ]
      let record = TestRecord(key: "user:ada", #"{"aps":{"alert":"x"}}"#, headers: headers, partition: 0)
      try await kafka.publish([record, record], to: cluster.topics.requests)
      let plan = try await cluster.plan { $0.isNew = true }
      for _ in 0..<2 {
        guard case .complete(let done) = try await cluster.replay(plan) else {
          Issue.record("it is not complete")
          return
        }
        #expect(done.counts[.written] == 2)
      }
      let records = try #require(try await cluster.records(count: 6)[0])
      let ids = records.dropFirst(2).map { record in record.headers.filter { $0.name.lowercased() == "apns-id" }.count }
      #expect(ids == [1, 1, 1, 1], "an id stands once, whatever the case of its name")
      let texts = records.suffix(4).map { Self.text($0, "apns-id") }
      #expect(texts[0] != first && texts[0] != texts[1], "each place has another one")
      #expect(texts[0] == texts[2] && texts[1] == texts[3] && texts.allSatisfy { $0.flatMap { NotificationID($0) } != nil })
      for again in records.suffix(4) {
        #expect(!again.headers.contains { $0.name.lowercased() == "carillon-origin" })
        #expect(again.key == record.key && again.value == record.value && again.headers.count { $0.name == "mine" } == 2)
      }
      guard case .complete(let second) = try await cluster.replay(cluster.plan { $0.isNew = true }) else { return }
      #expect((second.counts[.written], second.counts[.ofReplays]) == (2, 4), "what a replay wrote is not replayed")
    }
  }
}
