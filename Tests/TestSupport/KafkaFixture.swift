public import EventLoop
import Glibc
public import Kafka

/// A record as a test writes and reads it: everything copied.
public struct TestRecord: Sendable, Hashable {
  /// A header: its name and its value, which may be missing.
  public struct Header: Sendable, Hashable {
    /// Its name.
    public var name: String
    /// Its value; nil for none.
    public var value: [UInt8]?

    /// A header of text.
    public init(_ name: String, _ value: String?) {
      self.name = name
      self.value = value.map { Array($0.utf8) }
    }
  }

  /// The key; nil for none.
  public var key: [UInt8]?
  /// The value; nil for a tombstone.
  public var value: [UInt8]?
  /// The headers in their order.
  public var headers: [Header]
  /// The partition; nil lets the key decide.
  public var partition: Int32?
  /// Where it was found; nil before it is published.
  public var offset: Int64?
  /// Milliseconds since 1970; nil for now.
  public var timestamp: Int64?

  /// A record of text.
  public init(
    key: String? = nil, _ value: String?, headers: [Header] = [], partition: Int32? = nil, offset: Int64? = nil, timestamp: Int64? = nil
  ) {
    self.key = key.map { Array($0.utf8) }
    self.value = value.map { Array($0.utf8) }
    self.headers = headers
    self.partition = partition
    self.offset = offset
    self.timestamp = timestamp
  }

  /// Copies a consumed record.
  public init(_ record: RecordView) {
    key = record.key.map(Array.init)
    value = record.value.map(Array.init)
    headers = []
    partition = record.partition
    offset = record.offset
    timestamp = record.timestamp
    var copied: [Header] = []
    record.forEachHeader { name, value in
      var header = Header(String(cString: name), nil)
      header.value = value.map(Array.init)
      copied.append(header)
    }
    headers = copied
  }

  /// The value as text.
  public var text: String { String(decoding: value ?? [], as: UTF8.self) }

  /// The value of the first header of that name, as text.
  public func header(_ name: String) -> String? {
    headers.first { $0.name == name }.flatMap { $0.value }.map { String(decoding: $0, as: UTF8.self) }
  }
}

/// A Kafka for one test: the one that `TESTS_KAFKA` (`HOST:PORT,…`) names, else an embedded broker of its own.
public final class KafkaFixture: Sendable {
  /// How to reach it.
  public let configuration: KafkaConfiguration
  /// Its faults can be set here; nil on a real Kafka.
  public let embedded: EmbeddedBroker?
  /// Questions to it.
  public let admin: Admin
  /// A loop for `publish` and `records`.
  public let loop: EventLoop

  /// The bootstrap servers of a real Kafka; nil when the tests use embedded brokers.
  public static let realServers: [String]? = getenv("TESTS_KAFKA").map {
    String(cString: $0).split(separator: ",").map(String.init)
  }

  /// Flags for a transform worker on an embedded broker, unless its session is longer.
  ///
  /// The broker never answers a member whose session ends while it waits to join. It joins again after its poll interval, which may not be
  /// shorter than the longest session of its clients: 45 seconds, unless they ask for another.
  public static let embeddedPoll = ["--kafka.max.poll.interval.ms", "60000"]

  /// What a test that needs one says where it is skipped.
  public static let howToGetOne = "it needs a real Kafka: Deploy/test --kafka FOLDER, an unpacked Apache Kafka 4.0 or newer"

  private static let announcement: Void = {
    print("Kafka tests run on \(realServers.map { "the real Kafka at " + $0.joined(separator: ",") } ?? "embedded brokers")")
  }()

  /// Gives `body` a Kafka and ends it afterwards.
  ///
  /// - Parameters:
  ///   - embeddedOnly: for tests that set faults.
  ///   - brokers: of an embedded Kafka.
  public static func with<R: Sendable>(
    embeddedOnly: Bool = false, brokers: Int32 = 1, _ body: @Sendable (KafkaFixture) async throws -> R
  ) async throws -> R {
    Self.announcement
    let fixture = try KafkaFixture(embeddedOnly: embeddedOnly, brokers: brokers)
    do {
      let result = try await body(fixture)
      await fixture.close()
      return result
    } catch {
      await fixture.close()
      throw error
    }
  }

  /// Starts or finds a Kafka; `with` is safer.
  public init(embeddedOnly: Bool = false, brokers: Int32 = 1) throws {
    if let servers = Self.realServers, !embeddedOnly {
      embedded = nil
      configuration = KafkaConfiguration(bootstrapServers: servers, clientID: "carillon-test")
    } else {
      let broker = try EmbeddedBroker(brokers: brokers)
      embedded = broker
      // As `embeddedPoll`, for a session of a minute at most.
      configuration = broker.configuration.merging(["max.poll.interval.ms": "60000"])
    }
    admin = try Admin(configuration, timeoutMilliseconds: Int32(hangMilliseconds))
    loop = EventLoop(name: "kafka-fixture")
  }

  /// Uses a Kafka of the test's own.
  public init(at configuration: KafkaConfiguration) throws {
    embedded = nil
    self.configuration = configuration
    admin = try Admin(configuration, timeoutMilliseconds: Int32(hangMilliseconds))
    loop = EventLoop(name: "kafka-fixture")
  }

  /// Ends it.
  public func close() async {
    await admin.close()
    await embedded?.close()
    await loop.close()
  }

  /// Makes a topic with a name of its own.
  public func topic(_ name: String = "test", partitions: Int32 = 1, settings: [String: String] = [:]) async throws -> String {
    let unique = Self.unique(name)
    var settings = settings
    if let embedded {
      try embedded.createTopic(unique, partitions: partitions)
    } else if settings["retention.ms"] == nil {
      // Tests write timestamps of long ago, and a broker removes what is older than its retention, be it written just now.
      settings["retention.ms"] = "-1"
    }
    try await admin.ensureTopics([TopicSpecification(unique, partitions: partitions, settings: settings)])
    return unique
  }

  /// Makes topics with these names, all in one call.
  public func makeTopics(_ names: [String], partitions: Int32) async throws {
    for name in names { try embedded?.createTopic(name, partitions: partitions) }
    try await admin.ensureTopics(names.map { TopicSpecification($0, partitions: partitions) })
  }

  /// A name that no other test has: for topics and groups.
  public static func unique(_ name: String) -> String { "\(name)-\(String(UInt64.random(in: .min ... .max), radix: 36))" }

  /// Publishes records and waits until all are in the topic.
  public func publish(_ records: [TestRecord], to topic: String) async throws {
    try await Publisher(loop).publish(records, to: topic, configuration)
  }

  /// Reads a topic from its beginning until it has given so many records, in the order of their partitions and offsets.
  public func records(of topic: String, count: Int) async throws -> [TestRecord] {
    let partitions = try await admin.describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
    return try await Reader(loop).read(partitions, count, configuration)
  }
}

private final class Reports: ProducerHandler {
  var failure: KafkaError?
  func producerDelivered(_ reports: [DeliveryReport]) { failure = failure ?? reports.lazy.compactMap(\.error).first }
  func producerHasRoom() {}
  func producerFailed(_ error: KafkaError) { if error.isFatal { failure = error } }
}

private actor Publisher: LoopActor {
  nonisolated let loop: EventLoop

  init(_ loop: EventLoop) { self.loop = loop }

  func publish(_ records: [TestRecord], to topic: String, _ configuration: KafkaConfiguration) async throws {
    let reports = Reports()
    let producer = try Producer(on: loop, configuration, handler: reports)
    let handle = try producer.topic(topic)
    let headers = RecordHeaders()
    var refusal: KafkaError?
    for (place, record) in records.enumerated() {
      while !producer.hasRoom { _ = await producer.flush(withinMilliseconds: 100) }
      for header in record.headers {
        header.name.withCString { name in
          if let value = header.value { value.withUnsafeBytes { headers.append(name, $0) } } else { headers.append(name, nil) }
        }
      }
      let outcome = withOptionalBytes(record.key) { key in
        withOptionalBytes(record.value) { value in
          producer.produce(
            handle, partition: record.partition, key: key, value: value, headers: headers, timestamp: record.timestamp,
            opaque: UInt64(place)
          )
        }
      }
      if case .refused(let error) = outcome { refusal = error }
    }
    let isComplete = await producer.close(withinMilliseconds: hangMilliseconds)
    if let error = refusal ?? reports.failure { throw error }
    if !isComplete { throw NeverTrue(description: "all records are acknowledged") }
  }
}

private final class Collector: ConsumerHandler {
  var records: [TestRecord] = []
  func consumerReceived(_ batch: RecordBatch) { for place in batch.indices { records.append(TestRecord(batch[place])) } }
  func consumerAssigned(_ partitions: [AssignedPartition]) {}
  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }
  func consumerFailed(_ error: KafkaError) {}
}

private actor Reader: LoopActor {
  nonisolated let loop: EventLoop

  init(_ loop: EventLoop) { self.loop = loop }

  func read(_ partitions: [TopicPartition], _ count: Int, _ configuration: KafkaConfiguration) async throws -> [TestRecord] {
    let collector = Collector()
    let consumer = try Consumer(on: loop, configuration, Consumer.Options(), handler: collector)
    var failure: (any Error)?
    do {
      try await consumer.assign(partitions.map { ($0, .earliest) })
      try await requireEventually("\(count) records are read, not only \(collector.records.count)") { collector.records.count >= count }
    } catch { failure = error }
    await consumer.close()
    if let failure { throw failure }
    return collector.records.sorted { ($0.partition ?? 0, $0.offset ?? 0) < ($1.partition ?? 0, $1.offset ?? 0) }
  }
}
