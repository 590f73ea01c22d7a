public import EventLoop
public import Kafka

/// The progress of a reader, in offsets.
public struct ReadingProgress: Sendable, Hashable {
  /// The work in words: `reading events`.
  public var what: String
  /// Offsets that were read.
  public var read: Int64
  /// All offsets to read.
  public var total: Int64

  /// Progress of its parts.
  public init(what: String, read: Int64, total: Int64) { (self.what, self.read, self.total) = (what, read, total) }
}

/// Reads stretches of topics to their ends, without a group and without commits.
///
/// It hands out records as they come, and only librdkafka's bounded queue waits. So memory does not grow with the topics. Records of one
/// partition come in their order, partitions in any.
public final class TopicReader {
  fileprivate let loop: EventLoop
  private let kafka: KafkaConfiguration
  fileprivate let silenceMilliseconds: Int
  /// Called at most once a second during a reading, and not if it takes less than half a second.
  public var onProgress: ((ReadingProgress) -> Void)?
  /// Called for unreadable stretches, which are skipped.
  public var onUnreadable: ((UnreadableStretch) -> Void)?
  /// Called for each error of a reading's Kafka client. The reading goes on if the client can.
  public var onClientError: ((KafkaError) -> Void)?
  /// Asked at the start of a reading and once a second. If true, the reading fails with `closed`.
  public var isCanceled: () -> Bool = { false }
  /// The readings that go on.
  private var readings: [Reading] = []

  /// The limits of prefetched records, much lower than for a worker, whose lane must not wait.
  ///
  /// With a full queue, librdkafka before 2.2 continues only when something wakes its broker's thread, up to a second later. The metadata
  /// request wakes it: that needs a third of the memory, and is five times as fast.
  private static let bounds = [
    "queued.max.messages.kbytes": "8192", "fetch.message.max.bytes": "131072", "fetch.max.bytes": "16777216",
    "topic.metadata.refresh.interval.ms": "20",
  ]

  /// Makes a reader. Its first reading connects.
  ///
  /// - Parameter silenceMilliseconds: how long Kafka may send nothing before reading fails, though there is more to read.
  public init(on loop: EventLoop, _ kafka: KafkaConfiguration, silenceMilliseconds: Int = 60_000) {
    self.loop = loop
    self.kafka = kafka.merging(Self.bounds.merging(kafka.properties) { $1 })
    self.silenceMilliseconds = silenceMilliseconds
  }

  /// Makes a reader of single records. It fetches little more than the batch of each.
  public static func ofSingleRecords(on loop: EventLoop, _ kafka: KafkaConfiguration) -> TopicReader {
    TopicReader(on: loop, kafka.merging(["fetch.message.max.bytes": "1024", "queued.min.messages": "1"]))
  }

  /// Reads these stretches, at most one of a partition.
  ///
  /// - Parameters:
  ///   - what: the records in words, for the progress.
  ///   - pace: decides which partitions wait.
  ///   - batch: the most records of a batch.
  ///   - mustBeThere: whether a deleted record ends the reading. Otherwise it is left out.
  ///   - isCompacted: whether the topics are compacted, so that the last offsets may have no records. Then one is written after ten silent
  ///     seconds.
  ///   - isEnough: called after each batch, and while all is held. If true, the rest is not read.
  ///   - body: gets each record, which is valid only during the call.
  public func read(
    _ stretches: [TopicStretch], _ what: String, in pace: (any ReadingPace)? = nil, batch: Int = 1_000,
    mustBeThere: Bool = false, isCompacted: Bool = false, until isEnough: @escaping () -> Bool = { false },
    _ body: @escaping (RecordView) -> Void
  ) async throws(KafkaError) {
    loop.preconditionOnLoop()
    for stretch in stretches where stretch.offsets.isEmpty { pace?.ended(stretch.partition) }
    let stretches = stretches.filter { !$0.offsets.isEmpty }
    guard !stretches.isEmpty else { return }
    guard !isCanceled() else { throw KafkaError(.closed, "read \(what)") }
    let reading = Reading(of: self, stretches, what, pace, mustBeThere: mustBeThere, tellsSilence: isCompacted, isEnough, body)
    readings.append(reading)
    defer {
      readings.removeAll { $0 === reading }
      reading.close()
    }
    var options = Consumer.Options()
    // Transactions leave offsets without a record, even at the end.
    options.reportsPartitionEnd = true
    options.recordsPerTurn = batch
    let kafka = mustBeThere ? kafka.merging(["auto.offset.reset": "error"]) : kafka
    let consumer = try Consumer(on: loop, kafka, options, handler: reading)
    var failure: KafkaError?
    do throws(KafkaError) {
      try await consumer.assign(stretches.map { ($0.partition, .offset($0.offsets.lowerBound)) })
      failure = await reading.untilEnd(of: consumer)
      if reading.isSilent {
        try await EndTombstone.write(to: reading.unfinished, on: loop, self.kafka)
        failure = await reading.untilEnd(of: consumer)
      }
    } catch {
      failure = error
    }
    await consumer.close(withinMilliseconds: 2_000)
    if let failure { throw failure }
  }

  /// Reads single records at any places. Deleted ones are left out.
  public func read(at places: [(partition: TopicPartition, offset: Int64)], _ what: String, _ body: @escaping (RecordView) -> Void)
    async throws(KafkaError)
  {
    var wanted: [TopicPartition: [Int64]] = [:]
    for place in places where place.offset >= 0 { wanted[place.partition, default: []].append(place.offset) }
    for (partition, offsets) in wanted { wanted[partition] = Set(offsets).sorted() }
    // Each round has one stretch of a partition, with all places that are near each other.
    while !wanted.isEmpty {
      var stretches: [TopicStretch] = []
      var offsets: Set<Place> = []
      for (partition, all) in wanted {
        let near = all.prefix { $0 - (all.first ?? 0) < Self.nearby }
        for offset in near { offsets.insert(Place(partition: partition, offset: offset)) }
        if let first = near.first, let last = near.last { stretches.append(TopicStretch(partition, first, last + 1)) }
        wanted[partition] = near.count == all.count ? nil : Array(all.dropFirst(near.count))
      }
      try await read(stretches, what) { record in
        let place = Place(partition: TopicPartition(record.topic, record.partition), offset: record.offset)
        if offsets.contains(place) { body(record) }
      }
    }
  }

  /// Ends the readings that go on: they fail with `closed`.
  public func close() { for reading in readings { reading.end(KafkaError(.closed, "read \(reading.what)")) } }

  private struct Place: Hashable {
    let partition: TopicPartition
    let offset: Int64
  }

  /// Reading so many records in between costs less than another round.
  private static let nearby: Int64 = 2_000
}

/// One run of a reader.
private final class Reading: ConsumerHandler {
  private struct Part {
    let partition: TopicPartition
    let offsets: Range<Int64>
    var position: Int64
    var isDone = false
  }

  let what: String
  private let reader: TopicReader
  private let body: (RecordView) -> Void
  private let wanted: [TopicPartition: Range<Int64>]
  private let pace: (any ReadingPace)?
  private let isEnough: () -> Bool
  private let mustBeThere: Bool
  /// Whether `untilEnd` returns once after ten silent seconds.
  private var tellsSilence: Bool
  private(set) var isSilent = false
  /// By the consumer's numbers of the partitions.
  private var parts: [Part?] = []
  private var left: Int
  private var finished: [Int] = []
  private var clientError: KafkaError?
  private var outcome: KafkaError??
  private var waiting: CheckedContinuation<KafkaError?, Never>?
  private let timer: Timer
  private var quietSeconds = 0
  private let hold: Timer
  private var isHeld = false
  private var lastRead: Int64 = 0
  private weak var consumer: Consumer?

  init(
    of reader: TopicReader, _ stretches: [TopicStretch], _ what: String, _ pace: (any ReadingPace)?, mustBeThere: Bool,
    tellsSilence: Bool, _ isEnough: @escaping () -> Bool, _ body: @escaping (RecordView) -> Void
  ) {
    (self.reader, self.what, self.pace, self.mustBeThere) = (reader, what, pace, mustBeThere)
    (self.tellsSilence, self.isEnough, self.body) = (tellsSilence, isEnough, body)
    wanted = Dictionary(stretches.map { ($0.partition, $0.offsets) }) { first, _ in first }
    left = wanted.count
    (hold, timer) = (Timer(on: reader.loop), Timer(on: reader.loop))
    hold.handler = { [weak self] in self?.mayGoOn() }
    timer.handler = { [weak self] in self?.tick() }
    timer.start(after: 500, repeating: 1_000)
  }

  func untilEnd(of consumer: Consumer) async -> KafkaError? {
    self.consumer = consumer
    return await withCheckedContinuation { continuation in
      // Checked here, since other tasks may run between a check and an await.
      if let outcome { continuation.resume(returning: outcome) } else { waiting = continuation }
    }
  }

  /// The partitions that are not read to their ends.
  var unfinished: [TopicPartition] { parts.compactMap { part in part.flatMap { $0.isDone ? nil : $0.partition } } }

  func close() {
    timer.close()
    hold.close()
  }

  func end(_ error: KafkaError?) {
    guard outcome == nil else { return }
    outcome = .some(error)
    waiting?.resume(returning: error)
    waiting = nil
  }

  private var read: Int64 { parts.reduce(0) { sum, part in sum + (part.map { $0.position - $0.offsets.lowerBound } ?? 0) } }

  private var total: Int64 { wanted.values.reduce(0) { $0 + Int64($1.count) } }

  private func tick() {
    if outcome == nil, isEnough() { return end(nil) }
    if reader.isCanceled() { return end(KafkaError(.closed, "read \(what)")) }
    let read = read
    quietSeconds = read == lastRead && !isHeld ? quietSeconds + 1 : 0
    lastRead = read
    if tellsSilence, quietSeconds * 1_000 >= SilentEnds.silenceMilliseconds, let waiting {
      (tellsSilence, isSilent, self.waiting) = (false, true, nil)
      waiting.resume(returning: nil)
    } else if quietSeconds * 1_000 >= reader.silenceMilliseconds {
      let missing = unfinished.first
      end(
        clientError
          ?? KafkaError(
            .timedOut, "read \(missing.map(\.description) ?? what)",
            message: "no record came for \(ReadableText.duration(milliseconds: Int64(reader.silenceMilliseconds)))")
      )
    } else if outcome == nil {
      reader.onProgress?(ReadingProgress(what: "reading \(what)", read: read, total: total))
    }
  }

  private func advance(_ index: Int, to offset: Int64) {
    guard parts.indices.contains(index), let part = parts[index], !part.isDone else { return }
    parts[index]?.position = min(offset, part.offsets.upperBound)
    guard offset >= part.offsets.upperBound else { return }
    parts[index]?.isDone = true
    finished.append(index)
    pace?.ended(part.partition)
    left -= 1
    if left == 0 { end(nil) }
  }

  func consumerReceived(_ batch: RecordBatch) {
    for place in batch.indices {
      let record = batch[place]
      let index = record.partitionIndex
      guard outcome == nil, parts.indices.contains(index), let part = parts[index], !part.isDone else { continue }
      if part.offsets.contains(record.offset) { body(record) }
      advance(index, to: record.offset + 1)
    }
    rest()
  }

  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {
    advance(partition.index, to: offset)
    rest()
  }

  func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
    let index = stretch.partition.index
    guard outcome == nil, parts.indices.contains(index), let part = parts[index], !part.isDone else { return true }
    let offsets = stretch.offsets.clamped(to: part.offsets)
    if !offsets.isEmpty {
      reader.onUnreadable?(UnreadableStretch(partition: stretch.partition, offsets: offsets, error: stretch.error))
      let place = "offsets \(offsets.lowerBound) to \(offsets.upperBound - 1) of \(part.partition)"
      reader.onProgress?(
        ReadingProgress(what: "\(place) cannot be read (\(stretch.error.name)) and are passed over", read: read, total: total))
    }
    advance(index, to: stretch.offsets.upperBound)
    rest()
    return true
  }

  /// Pauses finished partitions, whose later records are not needed, and those that must wait.
  private func rest() {
    guard outcome == nil else { return }
    if isEnough() { return end(nil) }
    if !finished.isEmpty {
      consumer?.pause(finished)
      finished = []
    }
    guard let pace, let consumer else { return }
    if pace.isHeld, !isHeld {
      isHeld = true
      consumer.hold()
      hold.start(after: Self.holdMilliseconds)
    }
    for (index, part) in parts.enumerated() {
      guard let part, !part.isDone else { continue }
      if pace.waits(part.partition) { consumer.pause([index]) } else { consumer.resume([index]) }
    }
  }

  /// Continues the paused partitions that need not wait any more.
  private func mayGoOn() {
    guard outcome == nil else { return }
    if isEnough() { return end(nil) }
    guard pace?.isHeld != true else { return hold.start(after: Self.holdMilliseconds) }
    isHeld = false
    consumer?.release()
  }

  private static let holdMilliseconds = 5

  func consumerAssigned(_ partitions: [AssignedPartition]) {
    for partition in partitions {
      while parts.count <= partition.index { parts.append(nil) }
      // A partition whose log was truncated is assigned again.
      guard parts[partition.index] == nil, let offsets = wanted[partition.topicPartition] else { continue }
      parts[partition.index] = Part(partition: partition.topicPartition, offsets: offsets, position: offsets.lowerBound)
    }
  }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }

  func consumerFailed(_ error: KafkaError) {
    clientError = error
    reader.onClientError?(error)
    // The caller of an exact range has said that its records must exist.
    let isGone = error.code == .offsetsGone || error.code == .logTruncated && mustBeThere
    if error.isFatal || error.code == .unknownPartition || error.code == .unknownTopic || isGone { end(error) }
  }
}
