public import EventLoop
public import Kafka
import Notifications

/// Gets the requests and errors of the reader.
public protocol ApplicationsReaderOwner: AnyObject {
  /// `ApplicationsReader.ask` is due: run it in a task of the lane.
  func applicationsAreToBeAskedFor()
  /// The reader's Kafka client reported an error.
  func applicationsFailed(_ error: KafkaError)
}

/// Reads the topic `applications` completely before the lane works, and then follows it.
///
/// Its records need one order, so it has one partition. Records in further partitions, which an operator may have added, are ignored.
///
/// It has a consumer of its own and no group. The lane's consumer may be held for long, and a stop must not wait for that. The same consumer
/// reads the lane's other compacted topics.
public final class ApplicationsReader {
  private let loop: EventLoop
  private let kafka: KafkaConfiguration
  private let topic: String
  private let logger: Logger
  private let health: Health?
  /// The stops that are known now.
  public private(set) var table = StoppedApplications()
  private let followed: [any FollowedTable]
  /// The partitions that are read, by the consumer's indexes.
  private var following: [Int: Followed] = [:]
  /// The partitions of topics that were made again and are read since, by their indexes.
  private var renewed: [String: Set<Int>] = [:]
  /// Gets the requests and errors.
  public weak var owner: (any ApplicationsReaderOwner)?
  private var consumer: Consumer?
  /// By topic.
  private var silent: [String: SilentEnds] = [:]
  private let partition: TopicPartition
  /// The stops that hold during the first read: one that ended before is no news. Nil afterwards.
  private var standing: [Name: ApplicationStop]? = [:]
  private var phase = Phase.idle
  /// Callers of `confirm` whose question is not sent yet.
  private var unconfirmed: [(Bool) -> Void] = []
  /// Whether `ask` is due or running.
  private var isAsking = false
  private var runningAsks = 0

  private enum Phase { case idle, open, closed }

  /// A partition that is read.
  private struct Followed {
    let partition: TopicPartition
    /// What gets its records; nil for the stops.
    let table: (any FollowedTable)?
    /// The next offset that is read.
    var position: Int64 = 0
  }

  /// Makes a reader without any stop.
  ///
  /// - Parameters:
  ///   - health: gets the condition `applications` while requests of stopped applications wait; nil if nobody needs it.
  ///   - followed: further topics to read completely before `start` returns, and then to follow.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, logger: Logger, health: Health?,
    following followed: [any FollowedTable] = []
  ) {
    (self.loop, self.kafka, self.logger, self.health, self.followed) = (loop, kafka, logger, health, followed)
    topic = topics.applications
    partition = TopicPartition(topic, 0)
  }

  // MARK: Reading

  /// Reads all records that the topic has now, and then follows it.
  ///
  /// - Throws: an error that says which command creates the topic, if it is missing.
  public func start(_ admin: Admin, withinMilliseconds milliseconds: Int) async throws {
    _ = try await partitions(of: topic, admin)
    var all = [partition]
    for table in followed { all += try await partitions(of: table.topic, admin) }
    var options = Consumer.Options()
    // After a transaction, or in a compacted topic, some offsets have no record.
    options.reportsPartitionEnd = true
    // A broker answers as soon as it has a record, and an idle lane fetches rarely. The embedded broker looks once in that time. Of several
    // partitions one may have been missing in the question that is open, as at the start: its records wait for the next question.
    let isPatient = try await !admin.isEmbeddedBroker() && followed.isEmpty
    options.fetch = (bytes: 1, waitMilliseconds: isPatient ? Self.fetchMilliseconds : Self.shortFetchMilliseconds)
    // It may have been closed meanwhile.
    guard phase == .idle else { throw KafkaError(.closed, "read \(topic)") }
    phase = .open
    let records = Records()
    records.reader = self
    let consumer = try Consumer(on: loop, kafka, options, handler: records)
    self.consumer = consumer
    consumer.onLog = { [logger] in logger.log($0) }
    try await consumer.assign(all.map { ($0, .earliest) })
    let ends = try await admin.ends(of: all).filter { !$0.value.isEmpty }.mapValues(\.upperBound)
    if let late = try await unread(ends, withinMilliseconds: milliseconds) ?? (phase == .open ? nil : partition) {
      throw KafkaError(
        .timedOut, "read \(late.topic)",
        message: "it was not read to its end in \(ReadableText.duration(milliseconds: Int64(milliseconds)))")
    }
    for (application, stop) in (standing ?? [:]).sorted(by: { $0.key < $1.key }) { log(stop, of: application) }
    standing = nil
  }

  private func partitions(of topic: String, _ admin: Admin) async throws -> [TopicPartition] {
    do throws(KafkaError) {
      return try await admin.describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
    } catch {
      if error.code == .unknownTopicOrPartition { throw MissingTopic(topic: topic) }
      throw error
    }
  }

  /// Waits until the partitions are read to these ends; answers one that is not read in time.
  private func unread(_ ends: [TopicPartition: Int64], withinMilliseconds milliseconds: Int) async throws(KafkaError) -> TopicPartition? {
    let deadline = Deadline(on: loop, after: milliseconds)
    while phase == .open {
      let reached = Dictionary(uniqueKeysWithValues: following.values.map { ($0.partition, $0.position) })
      let late = ends.filter { reached[$0.key] ?? 0 < $0.value }
      guard !late.isEmpty, deadline.left > 0 else { return late.keys.min() }
      for (topic, late) in Dictionary(grouping: late, by: { $0.key.topic }) {
        let offsets = Dictionary(uniqueKeysWithValues: late.map { ($0.key.partition, reached[$0.key] ?? 0) })
        let wanted = Dictionary(uniqueKeysWithValues: late.map { ($0.key.partition, $0.value) })
        let numbers = silent[topic, default: SilentEnds()].look(offsets, ends: wanted, at: SteadyClock.milliseconds())
        guard !numbers.isEmpty else { continue }
        logger.warning("no record reaches the end of a topic: a tombstone is written", ["topic": topic])
        try await EndTombstone.write(to: numbers.map { TopicPartition(topic, $0) }, on: loop, kafka)
      }
      await loop.sleep(milliseconds: Self.lookAgainMilliseconds)
    }
    return ends.keys.min()
  }

  private static let lookAgainMilliseconds = 10

  private func log(_ stop: ApplicationStop, of application: Name) {
    logger.warning("an application is stopped", ["application": application, "by": stop.by, "reason": stop.reason ?? ""])
  }

  private static let (fetchMilliseconds, shortFetchMilliseconds) = (5_000, 500)

  /// Waits until all records that the topic has now are read; false if the time is over first.
  private func isRead(to admin: Admin, withinMilliseconds milliseconds: Int) async throws(KafkaError) -> Bool {
    let there = try await admin.ends(of: [partition])[partition] ?? 0..<0
    let position = following.values.first { $0.table == nil }?.position ?? 0
    // A topic that is shorter than the position was made again.
    if there.upperBound < position {
      forget(nil, topic)
      try await consumer?.assign([(partition, .earliest)])
    }
    return try await unread(there.isEmpty ? [:] : [partition: there.upperBound], withinMilliseconds: milliseconds) == nil
  }

  /// Drops what the former topic has said.
  private func forget(_ table: (any FollowedTable)?, _ topic: String) {
    logger.warning("a topic was made again: it is read from its beginning", ["topic": topic])
    if let table { table.forget() } else { self.table = StoppedApplications() }
  }

  /// Takes a record of the stops; answers why it counts for nothing, or nil where it counts.
  private func take(_ record: RecordView) -> String? {
    let change = table.take(key: record.key, value: record.value, timestamp: record.timestamp)
    func name() -> Name { Name(record.key.map { String(decoding: $0.prefix(256), as: UTF8.self) } ?? "") }
    switch change {
    case .stopped(let stop): if standing == nil { log(stop, of: name()) } else { standing?[name()] = stop }
    case .started:
      if standing == nil { logger.info("an application was started again", ["application": name()]) } else { standing?[name()] = nil }
    case .nothing: break
    case .refused(let reason): return reason
    }
    return nil
  }

  // MARK: Whether it is complete

  /// Calls back when the table has all current records of the topic, or with false on a failure.
  ///
  /// A stop that holds here may have ended elsewhere. So call this before anything is ended because of a stop.
  public func confirm(_ body: @escaping (Bool) -> Void) {
    guard phase == .open else { return body(false) }
    unconfirmed.append(body)
    guard !isAsking else { return }
    isAsking = true
    owner?.applicationsAreToBeAskedFor()
  }

  /// Reads the topic's end from Kafka for all callers of `confirm`, waits until that is read, and calls them back.
  public func ask(_ admin: Admin) async {
    runningAsks += 1
    defer { runningAsks -= 1 }
    while !unconfirmed.isEmpty {
      // Waits for further callers: under load one question serves thousands of requests.
      await loop.sleep(milliseconds: Self.companyMilliseconds)
      let asked = unconfirmed
      unconfirmed = []
      var failure: String?
      do throws(KafkaError) {
        if try await !isRead(to: admin, withinMilliseconds: Self.confirmMilliseconds) { failure = "it is not read to its end in time" }
      } catch {
        failure = "\(error)"
      }
      // A pause, so that callers who ask again at once do not keep the lane busy while Kafka is down.
      if failure != nil { await loop.sleep(milliseconds: Self.pauseMilliseconds) }
      if phase == .open { show(failure) }
      for body in asked { body(failure == nil && phase == .open) }
    }
    isAsking = false
  }

  private func show(_ failure: String?) {
    if let failure {
      health?.set("applications", ready: false, "requests of stopped applications wait: \(failure)")
    } else {
      health?.remove("applications")
    }
  }

  private static let (companyMilliseconds, confirmMilliseconds, pauseMilliseconds) = (10, 5_000, 500)

  // MARK: The end

  /// Closes the reader; the table stays. The caller closes the client of `ask` before, so that an open question ends soon.
  public func close() async {
    phase = .closed
    unconfirmed = []
    let consumer = consumer
    self.consumer = nil
    await consumer?.close(withinMilliseconds: 2_000)
    while runningAsks > 0 { await loop.sleep(milliseconds: 20) }
    owner = nil
  }

  // MARK: Events of the consumer

  /// The consumer keeps its handler while it is open, and the reader keeps the consumer.
  private final class Records: ConsumerHandler {
    weak var reader: ApplicationsReader?

    func consumerReceived(_ batch: RecordBatch) { reader?.received(batch) }

    func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {
      reader?.reachedEnd(of: partition, at: offset)
    }

    func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
      reader?.foundUnreadable(stretch)
      return true
    }

    func consumerAssigned(_ partitions: [AssignedPartition]) { reader?.assigned(partitions) }

    func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) {
      if reader?.phase == .open { reader?.revoked(partitions) }
      revocation.finish()
    }

    func consumerFailed(_ error: KafkaError) { reader?.owner?.applicationsFailed(error) }
  }

  private func assigned(_ partitions: [AssignedPartition]) {
    for partition in partitions {
      let topic = partition.topicPartition.topic
      if following[partition.index] != nil { renewed[topic, default: []].insert(partition.index) }
      following[partition.index] = Followed(partition: partition.topicPartition, table: followed.first { $0.topic == topic })
    }
  }

  /// Partitions go only where their topic was made again.
  private func revoked(_ partitions: [AssignedPartition]) {
    for (topic, going) in Dictionary(grouping: partitions, by: \.topicPartition.topic) {
      let again = renewed[topic] ?? []
      // The partitions of a topic go one after the other: what others have given of the new topic is not to be forgotten with the last of them.
      guard again.isEmpty || going.contains(where: { again.contains($0.index) }) else { continue }
      forget(followed.first { $0.topic == topic }, topic)
      renewed[topic] = []
    }
    for partition in partitions { following[partition.index]?.position = 0 }
  }

  private func received(_ batch: RecordBatch) {
    for index in batch.indices {
      let record = batch[index]
      guard let followed = following[record.partitionIndex] else { continue }
      following[record.partitionIndex]?.position = record.offset + 1
      if EndTombstone.matches(record) { continue }
      guard let reason = followed.table.map({ $0.take(record) }) ?? take(record) else { continue }
      logger.error(
        "a record is ignored", ["topic": record.topic, "partition": record.partition, "offset": record.offset, "reason": reason])
    }
  }

  private func foundUnreadable(_ stretch: UnreadableStretch) {
    reachedEnd(of: stretch.partition, at: stretch.offsets.upperBound)
    logger.error(
      "records cannot be read and are ignored: write again what they said; stop and start applications again",
      [
        "partition": "\(stretch.partition.topicPartition)", "first": stretch.offsets.lowerBound, "last": stretch.offsets.upperBound - 1,
        "error": "\(stretch.error)",
      ])
  }

  private func reachedEnd(of partition: AssignedPartition, at offset: Int64) {
    guard let followed = following[partition.index] else { return }
    following[partition.index]?.position = max(followed.position, offset)
  }
}
