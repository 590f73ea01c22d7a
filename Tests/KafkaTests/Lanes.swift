import EventLoop
import Foundation
import TestSupport
import Testing

@testable import Kafka

/// The total behind those of the partitions in librdkafka's statistics.
private func fetchedRecords(_ statistics: UnsafeRawBufferPointer) -> Int {
  let text = String(decoding: statistics, as: UTF8.self)
  return text.components(separatedBy: "\"rxmsgs\":").last.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
}

/// What a test's consumer does with its records.
enum Finishing: Sendable {
  case atOnce
  case never
}

/// A consumer on a loop of its own that remembers what it is told.
actor ConsumerLane: LoopActor {
  private final class Core: ConsumerHandler {
    let finishing: Finishing
    var consumer: Consumer?
    var committer: OffsetCommitter?
    var records: [TestRecord] = []
    var tickets: [RecordTicket] = []
    var owned: [AssignedPartition] = []
    var everOwned: [AssignedPartition] = []
    var lost = 0
    var partingMilliseconds = 300
    var left: [AssignedPartition] = []
    var errors: [KafkaError] = []
    var lines: [KafkaLogLine] = []
    var ends: [Int64] = []
    var pauses = 0
    var fetched = 0
    var holdsBatches = false
    var batches: [RecordBatch] = []
    var onBatch: ((Core, RecordBatch) -> Void)?
    var holdsRevocations = false
    var revocations: [Revocation] = []

    init(_ finishing: Finishing) { self.finishing = finishing }

    func consumerReceived(_ batch: RecordBatch) {
      for place in batch.indices {
        records.append(TestRecord(batch[place]))
        guard let committer, case .begun(let ticket) = committer.begin(batch[place]) else { continue }
        switch finishing {
        case .atOnce: committer.finish([ticket])
        case .never: tickets.append(ticket)
        }
      }
      if holdsBatches { batches.append(batch) }
      onBatch?(self, batch)
    }

    func consumerAssigned(_ partitions: [AssignedPartition]) {
      owned += partitions
      everOwned += partitions
      committer?.assigned(partitions)
    }

    func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) {
      owned.removeAll { partitions.contains($0) }
      if isLost { lost += partitions.count }
      if holdsRevocations {
        revocations.append(revocation)
      } else if let committer {
        committer.revoked(partitions, isLost: isLost, revocation: revocation, withinMilliseconds: partingMilliseconds) { [unowned self] in
          left += partitions
        }
      } else {
        revocation.finish()
      }
    }

    func consumerFailed(_ error: KafkaError) { errors.append(error) }
    func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) { ends.append(offset) }
  }

  nonisolated let loop: EventLoop
  private var core: Core?

  init(_ name: String = "consumer") { loop = EventLoop(name: name) }

  func open(
    _ configuration: KafkaConfiguration, _ options: Consumer.Options = .init(), finishing: Finishing = .atOnce, commitMilliseconds: Int = 50
  ) throws {
    let core = Core(finishing)
    let consumer = try Consumer(on: loop, configuration, options, handler: core)
    core.consumer = consumer
    consumer.onLog = { [unowned core] in core.lines.append($0) }
    consumer.onStatistics = { [unowned core] in core.fetched = fetchedRecords($0) }
    if options.group != nil { core.committer = OffsetCommitter(on: loop, consumer, intervalMilliseconds: commitMilliseconds) }
    self.core = core
  }

  /// A consumer that has joined a group.
  static func member(
    _ name: String, of group: String, _ kafka: KafkaFixture, _ properties: [String: String] = [:], reading topic: String,
    finishing: Finishing = .atOnce
  ) async throws -> ConsumerLane {
    let lane = ConsumerLane(name)
    try await lane.open(kafka.configuration.merging(properties), .init(group: group), finishing: finishing)
    try await lane.subscribe(topic)
    return lane
  }

  func subscribe(_ topics: String...) throws { try core?.consumer?.subscribe(topics) }

  func assign(_ positions: [(TopicPartition, StartPosition)], timeoutMilliseconds: Int32 = 60_000) async throws -> [AssignedPartition] {
    try await core?.consumer?.assign(positions, timeoutMilliseconds: timeoutMilliseconds) ?? []
  }

  func hold() { core?.consumer?.hold() }
  func release() { core?.consumer?.release() }
  func pause(_ index: Int) { core?.consumer?.pause([index]) }
  func isPaused(_ index: Int) -> Bool { core?.consumer?.isPaused(index) ?? false }
  func resume(_ index: Int) { core?.consumer?.resume([index]) }
  /// Starts each partition again that is owned, and begins it at once.
  func startAllAgain() {
    guard let consumer = core?.consumer else { return }
    for partition in consumer.assignment {
      consumer.startAgain(partition.index)
      for offer in consumer.offers { consumer.begin(offer, at: nil) }
    }
  }

  func holdBatches() { core?.holdsBatches = true }
  func holdRevocations() { core?.holdsRevocations = true }
  /// What is in flight may take so long where partitions are given up.
  func partWithin(milliseconds: Int) { core?.partingMilliseconds = milliseconds }
  func finishRevocations() { core?.revocations.forEach { $0.finish() } }
  /// Whether its group waits for an answer that has not begun.
  var isAsked: Bool { core?.consumer.map { !$0.rebalances.isEmpty } ?? false }
  var isClosing: Bool { core?.consumer?.state == .closing }
  var pendingRevocations: Int { core?.revocations.filter { !$0.isFinished }.count ?? 0 }

  /// Pauses the partition after each so many batches, and lets it go on soon after.
  func pauseOften() {
    var random = SeededRandom(seed: 7)
    core?.onBatch = { core, _ in
      guard let consumer = core.consumer else { return }
      for partition in consumer.assignment {
        if consumer.isPaused(partition.index) {
          if random.next() % 2 == 0 { consumer.resume([partition.index]) }
        } else if random.next() % 3 == 0 {
          consumer.pause([partition.index])
          core.pauses += 1
        }
      }
      // Something must go on flowing, or no batch comes to decide on.
      if consumer.assignment.allSatisfy({ consumer.isPaused($0.index) }) { consumer.resume(consumer.assignment.map(\.index)) }
    }
  }

  func stopPausing() {
    core?.onBatch = nil
    if let consumer = core?.consumer { consumer.resume(consumer.assignment.map(\.index)) }
  }

  var records: [TestRecord] { core?.records ?? [] }
  var count: Int { core?.records.count ?? 0 }
  /// Records that came over the network, as librdkafka counts them; only where the configuration asks for statistics.
  var fetched: Int { core?.fetched ?? 0 }
  var owned: [AssignedPartition] { core?.owned ?? [] }
  var everOwned: [AssignedPartition] { core?.everOwned ?? [] }
  /// The partitions that have left.
  var left: [AssignedPartition] { core?.left ?? [] }
  var errors: [KafkaError] { core?.errors ?? [] }
  var lines: [KafkaLogLine] { core?.lines ?? [] }
  var ends: [Int64] { core?.ends ?? [] }
  var lost: Int { core?.lost ?? 0 }
  var pauses: Int { core?.pauses ?? 0 }
  var inFlight: Int { core?.committer?.inFlight ?? 0 }

  /// The held batches, read again now.
  var heldRecords: [TestRecord] { core?.batches.flatMap { batch in batch.indices.map { TestRecord(batch[$0]) } } ?? [] }
  func releaseBatches() { core?.batches = [] }

  func finish(offsets: [Int64]) {
    guard let core else { return }
    for (place, record) in core.records.enumerated() where record.offset.map(offsets.contains) == true {
      core.committer?.finish([core.tickets[place]])
    }
  }

  func commit(_ offset: CommitOffset) async -> KafkaError? {
    guard let consumer = core?.consumer else { return nil }
    return await withCheckedContinuation { continuation in
      consumer.commit([offset]) { failed in continuation.resume(returning: failed[offset]) }
    }
  }

  func closeConsumer(withinMilliseconds milliseconds: Int = 60_000) async -> Bool {
    let isDone = await core?.consumer?.close(withinMilliseconds: milliseconds) ?? true
    core?.committer?.close()
    return isDone
  }

  private func drop() { core = nil }

  /// Ends all; it must not run on the loop that it ends.
  @discardableResult
  nonisolated func close() async -> Bool {
    let isDone = await closeConsumer()
    await drop()
    await loop.close()
    return isDone
  }
}

/// A producer on a loop of its own that remembers its reports.
actor ProducerLane: LoopActor {
  private final class Core: ProducerHandler {
    var producer: Producer?
    var reports: [DeliveryReport] = []
    var errors: [KafkaError] = []
    var rooms = 0
    func producerDelivered(_ reports: [DeliveryReport]) { self.reports += reports }
    func producerHasRoom() { rooms += 1 }
    func producerFailed(_ error: KafkaError) { errors.append(error) }
  }

  nonisolated let loop: EventLoop
  private var core: Core?

  init() { loop = EventLoop(name: "producer") }

  func open(_ configuration: KafkaConfiguration, _ options: Producer.Options = .patient) throws {
    let core = Core()
    core.producer = try Producer(on: loop, configuration, options, handler: core)
    self.core = core
  }

  func produce(_ topic: String, _ text: String, timestamp: Int64? = nil, opaque: UInt64) throws -> Producer.Outcome? {
    guard let producer = core?.producer else { return nil }
    let handle = try producer.topic(topic)
    return Array(text.utf8).withUnsafeBytes { producer.produce(handle, key: nil, value: $0, timestamp: timestamp, opaque: opaque) }
  }

  /// Several at once, so that no report can come in between.
  func produce(_ topic: String, opaques: Range<UInt64>) throws -> [Bool] {
    try opaques.map { if case .taken = try produce(topic, "x", opaque: $0) { true } else { false } }
  }

  func send(
    _ topic: String, key: String?, _ text: String?, partition: Int32? = nil, mayGoAlone: Bool = false
  ) async throws -> (partition: Int32, offset: Int64)? {
    guard let producer = core?.producer else { return nil }
    return try await producer.send(
      producer.topic(topic), partition: partition, key: key.map { Array($0.utf8) }, value: text.map { Array($0.utf8) },
      mayGoAlone: mayGoAlone)
  }

  func flush() async -> Bool { await core?.producer?.flush(withinMilliseconds: hangMilliseconds) ?? true }
  var reports: [DeliveryReport] { core?.reports ?? [] }
  var errors: [KafkaError] { core?.errors ?? [] }
  var rooms: Int { core?.rooms ?? 0 }
  var inFlight: Int { core?.producer?.inFlight ?? 0 }
  var refusingTopics: [String] { core?.producer?.refusingTopics(at: SteadyClock.milliseconds()).map(\.topic) ?? [] }

  private func closeProducer(_ milliseconds: Int) async -> Bool {
    await core?.producer?.close(withinMilliseconds: milliseconds) ?? true
  }

  /// Ends the producer; what it reported can still be read.
  @discardableResult
  func close(withinMilliseconds milliseconds: Int = 60_000) async -> Bool { await closeProducer(milliseconds) }

  /// Ends the loop too; it must not run on the loop that it ends.
  nonisolated func end() async {
    _ = await closeProducer(60_000)
    await loop.close()
  }
}

extension Producer.Options {
  /// Those of a test, whose records wait for a machine that stands still.
  static var patient: Self {
    var options = Self()
    options.messageTimeoutMilliseconds = hangMilliseconds
    return options
  }
}
