public import EventLoop
public import Kafka
import Notifications

/// What the reader of the applications asks of its lane.
public protocol ApplicationsReaderOwner: AnyObject {
  /// `ApplicationsReader.ask` is to run in a task of the lane.
  func applicationsAreToBeAskedFor()
  /// The reader's Kafka client reported an error.
  func applicationsFailed(_ error: KafkaError)
}

/// Reads `notifications.applications`, in no group: all of it before the lane takes work, and then what comes. Loop-confined.
///
/// Its records are in one partition, for they have one order; what lies in others, if somebody has added any, counts for nothing.
///
/// It has a consumer of its own, since the lane's may hold its records back for long, and a stop is not to wait for that.
public final class ApplicationsReader {
  private let loop: EventLoop
  private let kafka: KafkaConfiguration
  private let topic: String
  private let logger: Logger
  private let health: Health?
  /// What is known by now.
  public private(set) var table = StoppedApplications()
  /// Asked to run `ask`, and told of the Kafka client's errors.
  public weak var owner: (any ApplicationsReaderOwner)?
  private var consumer: Consumer?
  private let partition: TopicPartition
  /// The next offset that is read.
  private var position: Int64 = 0
  private var silent = SilentEnds()
  private var reading: Reading?
  /// The stops that stand, while the topic is read for the first time: one that ended before is no news. Nil after that.
  private var standing: [Name: ApplicationStop]? = [:]
  private var phase = Phase.idle
  /// Those who want to know that the table is complete, and have not been asked for yet.
  private var unconfirmed: [(Bool) -> Void] = []
  /// `ask` is wanted, or runs.
  private var isAsking = false
  private var runningAsks = 0

  private enum Phase { case idle, open, closed }

  /// Somebody waits until so much is read.
  private struct Reading {
    let end: Int64
    let deadline: Timer
    let waiting: CheckedContinuation<Bool, Never>
  }

  /// A reader that knows nothing yet.
  ///
  /// - Parameter health: gets the condition `applications` while requests of stopped applications wait; nil where nobody asks for it.
  public init(on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, logger: Logger, health: Health?) {
    (self.loop, self.kafka, self.logger, self.health) = (loop, kafka, logger, health)
    topic = topics.applications
    partition = TopicPartition(topic, 0)
  }

  // MARK: Reading

  /// Reads all that the topic has now, and follows it from there.
  ///
  /// - Throws: an error that says what to type where there is no such topic.
  public func start(_ admin: Admin, withinMilliseconds milliseconds: Int) async throws {
    do throws(KafkaError) {
      _ = try await admin.describe(topic: topic)
    } catch {
      if error.code == .unknownTopicOrPartition { throw MissingTopic(topic: topic) }
      throw error
    }
    var options = Consumer.Options()
    // Behind a transaction, or where a topic was compacted, there are offsets that no record has.
    options.reportsPartitionEnd = true
    // A broker answers as soon as there is something, and an idle lane asks seldom; the embedded one looks once in that time.
    let isEmbedded = try await admin.isEmbeddedBroker()
    options.fetch = (bytes: 1, waitMilliseconds: isEmbedded ? Self.embeddedFetchMilliseconds : Self.fetchMilliseconds)
    // It may have been closed meanwhile.
    guard phase == .idle else { throw KafkaError(.closed, "read \(topic)") }
    phase = .open
    let records = Records()
    records.reader = self
    let consumer = try Consumer(on: loop, kafka, options, handler: records)
    self.consumer = consumer
    consumer.onLog = { [logger] in logger.log($0) }
    try await consumer.assign([(partition, .earliest)])
    guard try await isRead(to: admin, withinMilliseconds: milliseconds) else {
      throw KafkaError(
        .timedOut, "read \(topic)", message: "it was not read to its end in \(ReadableText.duration(milliseconds: Int64(milliseconds)))")
    }
    for (application, stop) in (standing ?? [:]).sorted(by: { $0.key < $1.key }) { log(stop, of: application) }
    standing = nil
  }

  private func log(_ stop: ApplicationStop, of application: Name) {
    logger.warning("an application is stopped", ["application": application, "by": stop.by, "reason": stop.reason ?? ""])
  }

  private static let (fetchMilliseconds, embeddedFetchMilliseconds) = (5_000, 500)
  /// How often a wait looks whether anything comes, in milliseconds.
  private static let lookMilliseconds = 5_000

  /// Waits until all is read that the topic has at this moment; false when it is not in time.
  private func isRead(to admin: Admin, withinMilliseconds milliseconds: Int) async throws(KafkaError) -> Bool {
    let there = try await admin.ends(of: [partition])[partition] ?? 0..<0
    // Only a topic that was made again is shorter than what was read of it.
    if there.upperBound < position { try await readAgain() }
    let (end, deadline) = (there.isEmpty ? 0 : there.upperBound, Deadline(on: loop, after: milliseconds))
    while phase == .open, deadline.left > 0 {
      if await isRead(to: end, withinMilliseconds: min(deadline.left, Self.lookMilliseconds)) { return true }
      let silent = silent.look([partition.partition: position], ends: [partition.partition: end], at: SteadyClock.milliseconds())
      guard phase == .open, !silent.isEmpty else { continue }
      logger.warning("no record reaches the end of the applications: a tombstone is written", ["topic": topic])
      try await EndTombstone.write(to: [partition], on: loop, kafka)
    }
    return false
  }

  private func isRead(to end: Int64, withinMilliseconds milliseconds: Int) async -> Bool {
    await withCheckedContinuation { continuation in
      guard phase == .open else { return continuation.resume(returning: false) }
      let deadline = Timer(on: loop) { [weak self] in self?.finishReading(false) }
      deadline.start(after: milliseconds)
      reading = Reading(end: end, deadline: deadline, waiting: continuation)
      readingWent()
    }
  }

  private func readingWent() {
    guard let reading, position >= reading.end else { return }
    finishReading(true)
  }

  private func readAgain() async throws(KafkaError) {
    forget()
    try await consumer?.assign([(partition, .earliest)])
  }

  /// The stops that the former topic told of do not count.
  private func forget() {
    logger.warning("the topic of the applications was made again: it is read from its beginning", ["topic": topic])
    (table, position) = (StoppedApplications(), 0)
  }

  private func finishReading(_ isRead: Bool) {
    guard let reading else { return }
    self.reading = nil
    reading.deadline.close()
    reading.waiting.resume(returning: isRead)
  }

  private func take(_ record: RecordView) {
    if EndTombstone.matches(record) { return }
    let change = table.take(key: record.key, value: record.value, timestamp: record.timestamp)
    func name() -> Name { Name(record.key.map { String(decoding: $0.prefix(256), as: UTF8.self) } ?? "") }
    switch change {
    case .stopped(let stop): if standing == nil { log(stop, of: name()) } else { standing?[name()] = stop }
    case .started:
      if standing == nil { logger.info("an application is not stopped any more", ["application": name()]) } else { standing?[name()] = nil }
    case .nothing: break
    case .refused(let reason):
      logger.error(
        "a record of the applications counts for nothing",
        ["topic": topic, "partition": record.partition, "offset": record.offset, "reason": reason])
    }
  }

  // MARK: Whether it is complete

  /// Calls back when the table has all that the topic had at the moment of this call, or with false when that cannot be known now.
  ///
  /// A stop that goes on as far as is known here may have ended elsewhere: before anything is ended by it, this makes sure.
  public func confirm(_ body: @escaping (Bool) -> Void) {
    guard phase == .open else { return body(false) }
    unconfirmed.append(body)
    guard !isAsking else { return }
    isAsking = true
    owner?.applicationsAreToBeAskedFor()
  }

  /// Asks Kafka where the topic ends, for all who have called `confirm`, waits until that is read, and calls them back.
  public func ask(_ admin: Admin) async {
    runningAsks += 1
    defer { runningAsks -= 1 }
    while !unconfirmed.isEmpty {
      // For company: under load there is one question for thousands of requests.
      await loop.sleep(milliseconds: Self.companyMilliseconds)
      let asked = unconfirmed
      unconfirmed = []
      var failure: String?
      do throws(KafkaError) {
        if try await !isRead(to: admin, withinMilliseconds: Self.confirmMilliseconds) { failure = "it is not read to its end in time" }
      } catch {
        failure = "\(error)"
      }
      // Who asks again at once is not to keep everybody busy while Kafka is away.
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

  /// Ends it; what is known stays. The client that it asks with is closed before, so that a question that is open ends soon.
  public func close(withinMilliseconds milliseconds: Int = 2_000) async {
    phase = .closed
    finishReading(false)
    unconfirmed = []
    let consumer = consumer
    self.consumer = nil
    await consumer?.close(withinMilliseconds: milliseconds)
    while runningAsks > 0 { await loop.sleep(milliseconds: 20) }
    owner = nil
  }

  // MARK: What the consumer tells

  /// The consumer keeps its handler as long as it is open, and the reader keeps the consumer.
  private final class Records: ConsumerHandler {
    weak var reader: ApplicationsReader?

    func consumerReceived(_ batch: RecordBatch) { reader?.received(batch) }

    func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {
      reader?.reachedEnd(at: offset)
    }

    func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
      reader?.foundUnreadable(stretch)
      return true
    }

    func consumerAssigned(_ partitions: [AssignedPartition]) {}

    func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) {
      if reader?.phase == .open { reader?.forget() }
      revocation.finish()
    }

    func consumerFailed(_ error: KafkaError) { reader?.owner?.applicationsFailed(error) }
  }

  private func received(_ batch: RecordBatch) {
    for index in batch.indices {
      let record = batch[index]
      take(record)
      position = record.offset + 1
    }
    readingWent()
  }

  private func foundUnreadable(_ stretch: UnreadableStretch) {
    logger.error(
      "records of the applications cannot be read and count for nothing: stop and start these applications again",
      [
        "topic": topic, "first": stretch.offsets.lowerBound, "last": stretch.offsets.upperBound - 1, "error": "\(stretch.error)",
      ])
    reachedEnd(at: stretch.offsets.upperBound)
  }

  private func reachedEnd(at offset: Int64) {
    position = max(position, offset)
    readingWent()
  }
}
