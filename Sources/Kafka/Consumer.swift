import CRdKafka
public import EventLoop

/// A consumer on a loop, in a group (`subscribe`) or with partitions of its own choice (`assign`).
///
/// It always polls, so `max.poll.interval.ms` never passes while the loop runs. Back-pressure is `hold`, or `pause` for single partitions.
/// It commits no offset by itself: see `OffsetCommitter`. Only `close` ends it. Until then it keeps itself and its handler alive.
///
/// - Note: librdkafka 2.0.2 can lose records if a rebalance meets a `rd_kafka_consume_batch_queue` call for more than one record (change
///   log of 2.0.0, fixed in 2.1.0).
///   So the consumer takes one record per call and gathers them here.
///   librdkafka can also fetch records again (its issue 4636); the consumer drops them by their offsets.
public final class Consumer {
  /// How a consumer reads.
  public struct Options: Sendable {
    /// The group; nil for a consumer that only uses `assign`.
    var group: String?
    /// The name of a static member, by which others can remove it from the group; unique in the group.
    public var instanceID: String?
    /// Whether the handler is called when the consumer reaches a partition's end.
    public var reportsPartitionEnd = false
    /// How many bytes a fetch waits for, and how long at most in milliseconds. With one byte a fetch brings the first record at once, often
    /// alone. With many it waits for more records. The embedded broker answers with what it has, and looks once in that time.
    public var fetch: (bytes: Int, waitMilliseconds: Int) = (1, 100)
    /// The most records of one turn of the loop.
    public var recordsPerTurn = 1_000
    /// Whether partitions of the group are offered to the handler, which decides by `begin` where reading starts. Otherwise reading starts
    /// at the committed offset. Only with cooperative assignment.
    public var offersPartitions = false
    /// Partitions of other topics that are assigned and revoked together with a partition of the group, whatever the group's strategy
    /// balances. Only with `offersPartitions`.
    public var companions: @Sendable (TopicPartition) -> [TopicPartition] = { _ in [] }
    /// How long the handler may delay a revocation, in milliseconds.
    public var revocationTimeoutMilliseconds = 5_000

    /// How long the group waits for a dead member before others get its partitions, in milliseconds. Brokers allow 6 s and more, unless
    /// `group.min.session.timeout.ms` is lower.
    public var sessionTimeoutMilliseconds = 6_000

    /// Options of a consumer, with or without a group.
    public init(group: String? = nil) { self.group = group }

    /// How often a member shows its group that it lives, in milliseconds at most. It learns at these moments that others come or go.
    private static let longestHeartbeatMilliseconds = 300

    /// librdkafka's properties of a member of the group.
    var membership: [String: String] {
      var properties = [
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": String(sessionTimeoutMilliseconds),
        "heartbeat.interval.ms": String(max(1, min(sessionTimeoutMilliseconds / 6, Self.longestHeartbeatMilliseconds))),
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "allow.auto.create.topics": "false",
      ]
      if let group { properties["group.id"] = group }
      if let instanceID { properties["group.instance.id"] = instanceID }
      return properties
    }
  }

  enum State { case open, closing, closed }

  /// The consumer's loop.
  let loop: EventLoop
  /// Gets librdkafka's log.
  public var onLog: ((KafkaLogLine) -> Void)?
  /// A short text to commit beside the offset of the partition with this index; nil for none.
  public var commitNote: ((_ index: Int) -> String?)?
  /// Gets librdkafka's statistics as JSON text (`statistics.interval.ms`). The text is valid only during the call.
  var onStatistics: ((UnsafeRawBufferPointer) -> Void)?

  let client: ClientHandle
  var partitions = ConsumerPartitions()
  /// Whether `hold` stops the records.
  public private(set) var isHeld = false
  private(set) var handler: (any ConsumerHandler)?
  let options: Options
  let configuration: KafkaConfiguration
  /// Searches for the ends of unreadable batches, by the partitions' indexes.
  var searches: [Int: Search] = [:]
  var searchTimer: Timer?
  let rebalances: RebalanceInbox
  // Queues for the group's events, for records, and for all else. Records are apart, so that a consumer that takes none still sees its
  // group's events.
  private let group: OpaquePointer
  private let records: OpaquePointer
  private let events: OpaquePointer
  private var queues: [OpaquePointer] { [group, records, events] }
  private var waker: Waker?
  /// Polls an idle consumer, because librdkafka makes a consumer that does not poll leave its group.
  private var pollTimer: Timer?
  private var scratch: UnsafeMutablePointer<RecordBatch.Entry>
  private var gathered = 0
  /// Partitions whose ends are reached by the batch that is being gathered.
  private var reachedEnds: [(partition: AssignedPartition, offset: Int64)] = []
  private(set) var state = State.open
  private(set) var revoking: (revocation: Revocation, deadline: Timer)?
  /// Whether the brokers are being asked about topics that were made again.
  var isLookingForReplaced = false
  private var commits: CommitRequests?
  private let afterRevocation: LoopWaiters
  private let ended = Latch()

  /// Makes a consumer that reads nothing yet.
  ///
  /// - Throws: an error that names the property if the configuration is wrong.
  public init(on loop: EventLoop, _ configuration: KafkaConfiguration, _ options: Options, handler: any ConsumerHandler) throws(KafkaError)
  {
    loop.preconditionOnLoop()
    self.loop = loop
    self.options = options
    self.configuration = configuration
    let defaults = [
      "group.id": "\(configuration.clientID).ungrouped",
      "auto.offset.reset": "earliest",
      // Without the check, librdkafka may fetch a batch with a flipped bit for ever, in silence.
      "check.crcs": "true",
      "enable.partition.eof": options.reportsPartitionEnd ? "true" : "false",
      // The bounds of the fetched records of all partitions together. librdkafka counts values alone and takes about a kilobyte more for each
      // record, so the number bounds small ones. Fetching that passes a bound pauses for up to a second: both last for longer than that.
      "queued.min.messages": "200000",
      "queued.max.messages.kbytes": "131072",
      "fetch.min.bytes": String(options.fetch.bytes),
      "fetch.wait.max.ms": String(options.fetch.waitMilliseconds),
      // The most bytes of each partition in a fetch. With one partition and 200 ms to Kafka and back it allows 40 MB/s; the default allows
      // a fifth.
      "fetch.message.max.bytes": "8388608",
      "socket.nagle.disable": "true",
    ]
    let object = try configuration.object(defaults: defaults.merging(options.membership) { $1 }, forConsumer: true)
    rebalances = RebalanceInbox(isStatic: options.instanceID != nil)
    rd_kafka_conf_set_events(
      object.pointer, RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_ERROR | RD_KAFKA_EVENT_STATS | RD_KAFKA_EVENT_OFFSET_COMMIT)
    client = try ClientHandle(RD_KAFKA_CONSUMER, object, rebalances: rebalances)
    guard let group = rd_kafka_queue_get_consumer(client.pointer), let records = rd_kafka_queue_new(client.pointer),
      let events = rd_kafka_queue_get_main(client.pointer)
    else { preconditionFailure("a consumer of a group has both queues, and any number of others") }
    self.group = group
    self.records = records
    self.events = events
    scratch = .allocate(capacity: max(1, options.recordsPerTurn))
    afterRevocation = LoopWaiters(on: loop)
    self.handler = handler
    commits = CommitRequests(
      on: loop, client, queue: events, mustWait: { [self] in state == .open && rebalances.isJoining },
      name: { [self] in partitions.isCurrent($0) ? partitions[$0.partition].topicPartition : nil },
      note: { [self] in commitNote?($0.partition) })
    rd_kafka_set_log_queue(client.pointer, events)
    do {
      let stop = { [queues] in for queue in queues { rd_kafka_queue_cb_event_enable(queue, nil, nil) } }
      let waker = try Waker(on: loop, stop: stop) { self.serve() }
      self.waker = waker
      for queue in queues { rd_kafka_queue_cb_event_enable(queue, { _, waker in Waker.wake(waker) }, waker.pointer) }
      waker.wake()
      pollTimer = Timer(on: loop, after: Self.pollMilliseconds, repeating: Self.pollMilliseconds) { waker.wake() }
    } catch {
      abandon()
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "make a consumer", message: "\(error)")
    }
  }

  deinit { scratch.deallocate() }

  // MARK: What to read

  /// Joins the group for these topics. Partitions arrive by `consumerAssigned`, on the embedded broker after about 3 s.
  public func subscribe(_ topics: [String]) throws(KafkaError) {
    try requireOpen("subscribe")
    let list = PartitionList(topics.map { TopicPartition($0, RD_KAFKA_PARTITION_UA) })
    try check(rd_kafka_subscribe(client.pointer, list.pointer), "subscribe to \(topics.joined(separator: ", "))")
  }

  func requireOpen(_ operation: String) throws(KafkaError) {
    loop.preconditionOnLoop()
    if state != .open { throw KafkaError(.closed, operation, message: "the consumer is closed") }
  }

  // MARK: The loop's turn

  private func serve() {
    guard state != .closed else { return }
    serveEvents()
    commits?.sendHeld()
    serveGroup()
    if !isHeld { serveRecords() }
  }

  /// Well within `max.poll.interval.ms`, which is five minutes by default.
  private static let pollMilliseconds = 1_000

  /// Takes no records until `release`. Everything else continues, and librdkafka prefetches up to its limits.
  public func hold() {
    loop.preconditionOnLoop()
    isHeld = true
  }

  /// Takes records again after `hold`.
  public func release() {
    loop.preconditionOnLoop()
    guard isHeld else { return }
    isHeld = false
    waker?.wake()
  }

  /// Makes librdkafka read partitions and put their records into the queue of records.
  ///
  /// - Parameter assign: assigns them in librdkafka; it returns when librdkafka's thread has done so.
  func read(_ partitions: [TopicPartition], _ assign: () -> KafkaError?) -> KafkaError? {
    route(partitions)
    if let error = assign() { return error }
    // librdkafka forgets the queue when it stops reading a partition. It does so on its own thread: for a partition that was just revoked
    // perhaps after the first of these calls, but before it processes this assignment. Without the second call, records would lie in a
    // queue that nobody reads.
    route(partitions)
    return nil
  }

  private func route(_ partitions: [TopicPartition]) {
    for partition in partitions {
      guard let queue = rd_kafka_queue_get_partition(client.pointer, partition.topic, partition.partition) else { continue }
      rd_kafka_queue_forward(queue, records)
      rd_kafka_queue_destroy(queue)
    }
  }

  private func serveEvents() {
    while let event = rd_kafka_queue_poll(events, 0) {
      defer { rd_kafka_event_destroy(event) }
      if rd_kafka_event_type(event) == RD_KAFKA_EVENT_OFFSET_COMMIT {
        commits?.take(event)
      } else {
        client.dispatch(event, log: onLog, statistics: onStatistics) { handler?.consumerFailed($0) }
      }
    }
  }

  private func serveGroup() {
    var message: UnsafeMutablePointer<rd_kafka_message_t>?
    while state != .closed {
      // librdkafka calls back within this call.
      let count = rd_kafka_consume_batch_queue(group, 0, &message, 1)
      if !rebalances.isEmpty { rebalance() }
      lookForGoneTopics()
      guard count > 0, let message else { return }
      take(message)
      deliver()
    }
  }

  private func serveRecords() {
    var taken = 0
    while taken < max(1, options.recordsPerTurn) {
      var message: UnsafeMutablePointer<rd_kafka_message_t>?
      let count = rd_kafka_consume_batch_queue(records, 0, &message, 1)
      lookForGoneTopics()
      guard count > 0, let message else { return deliver() }
      taken += 1
      take(message)
    }
    deliver()
    // librdkafka wakes the loop only if a queue was empty.
    waker?.wake()
  }

  @inline(__always)
  private func take(_ message: UnsafeMutablePointer<rd_kafka_message_t>) {
    let index = partitions.index(topic: message.pointee.rkt, partition: message.pointee.partition)
    guard message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else { return takeError(message, index) }
    // After an unreadable batch librdkafka may read at any offset.
    guard index >= 0, partitions[index].state == .owned, !partitions[index].isSearched, state == .open else {
      return rd_kafka_message_destroy(message)
    }
    let offset = message.pointee.offset
    var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    let timestamp = rd_kafka_message_timestamp(message, &kind)
    if offset < partitions[index].position.next {
      let isOfAnotherLog = partitions[index].position.isOfAnotherLog(offset, at: timestamp, end: end(of: index))
      if isOfAnotherLog { beganAgain(index) }
      // An offered partition is read again when it begins.
      guard isOfAnotherLog, !options.offersPartitions else { return rd_kafka_message_destroy(message) }
    }
    partitions[index].position.give(offset, at: timestamp, isAppendTime: kind == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME)
    let generation = partitions[index].generation
    (scratch + gathered).initialize(
      to: RecordBatch.Entry(message: message, partition: Int32(truncatingIfNeeded: index), generation: generation))
    gathered += 1
  }

  private func takeError(_ message: UnsafeMutablePointer<rd_kafka_message_t>, _ index: Int) {
    defer { rd_kafka_message_destroy(message) }
    if message.pointee.err == RD_KAFKA_RESP_ERR__PARTITION_EOF {
      // Reported after the batch, so that it does not cut the batch short.
      if index >= 0, partitions[index].state == .owned, !partitions[index].isSearched {
        reachedEnds.append((partitions.assigned(index), message.pointee.offset))
      }
    } else {
      deliver()
      let place =
        message.pointee.rkt == nil ? "" : " \(String(cString: rd_kafka_topic_name(message.pointee.rkt)))/\(message.pointee.partition)"
      let text = rd_kafka_message_errstr(message).map { String(cString: $0) } ?? ""
      let error = KafkaError(message.pointee.err, "consume\(place)", message: text)
      if error.isOfBytes, index >= 0, partitions[index].state == .owned, state == .open {
        foundUnreadable(index, batch: message.pointee.offset)
      } else if index < 0 || !partitions[index].isSearched {
        handler?.consumerFailed(error)
      }
    }
  }

  private func deliver() {
    if gathered > 0 {
      let batch = RecordBatch(client: client, moving: scratch, count: gathered)
      gathered = 0
      handler?.consumerReceived(batch)
    }
    guard !reachedEnds.isEmpty else { return }
    let ends = reachedEnds
    reachedEnds.removeAll(keepingCapacity: true)
    for (partition, offset) in ends where partitions[partition.index].generation == partition.generation {
      handler?.consumerReachedEnd(of: partition, at: offset)
    }
  }

  /// The end of a partition's log by its last fetch.
  func end(of index: Int) -> Int64? { Self.end(of: partitions[index].topicPartition, client.pointer) }

  /// The end of a partition's log by its last fetch, on any thread.
  static func end(of name: TopicPartition, _ client: OpaquePointer) -> Int64? {
    var low: Int64 = 0
    var high: Int64 = 0
    let code = rd_kafka_get_watermark_offsets(client, name.topic, name.partition, &low, &high)
    return code == RD_KAFKA_RESP_ERR_NO_ERROR && high >= 0 ? high : nil
  }

  /// Restarts partitions on offer whose topic is missing. The topic may be made again with as many records as were read, and the record
  /// before the position shows that.
  private func lookForGoneTopics() {
    // During a revocation an unassignment counts as its consent. librdkafka reports a topic that stays missing again.
    guard rebalances.hasGoneTopics, options.offersPartitions, revoking == nil else { return }
    let topics = rebalances.takeGoneTopics()
    // A partition without any record has just begun in this way.
    let indexes = partitions.ownedIndexes.filter {
      partitions[$0].position.next >= 0 && topics.contains(partitions[$0].topicPartition.topic)
    }
    guard !indexes.isEmpty else { return }
    deliver()
    for index in indexes {
      handler?.consumerFailed(KafkaError(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "consume \(partitions[index].topicPartition)"))
      startAgain(index)
    }
  }

  private func beganAgain(_ index: Int) {
    deliver()
    let name = partitions[index].topicPartition
    handler?.consumerFailed(KafkaError(.logTruncated, "consume \(name)"))
    if options.offersPartitions { return startAgain(index) }
    handler?.consumerRevoked([partitions.assigned(index)], isLost: true, revocation: Revocation {})
    _ = own([(name, nil)])
  }

  // MARK: Rebalances

  private func rebalance() {
    while revoking == nil, state == .open, let change = rebalances.next() {
      if change.isAssignment, options.offersPartitions {
        // The group waits for any answer. Partitions are added when the handler has decided where to begin.
        let none = PartitionList(capacity: 0)
        withExtendedLifetime(none) { report(.of(rd_kafka_incremental_assign(client.pointer, none.pointer), "take partitions")) }
        offer(withCompanions(change).map { partitions.offer($0, client: client.pointer) })
      } else if change.isAssignment {
        report(
          read(change.partitions.partitions) {
            .of(rd_kafka_incremental_assign(client.pointer, change.partitions.pointer), "take partitions")
          })
        _ = own(change.partitions.partitions.map { ($0, nil) })
      } else {
        let known = withCompanions(change).compactMap { partitions.index(of: $0) }
        for index in known where partitions[index].state == .offered { partitions.withdraw(index) }
        let indexes = known.filter { partitions[$0].state == .owned }
        disown(indexes, isLost: change.isLost) { [self] in
          // An offered partition was never assigned here, and librdkafka refuses a list with such a partition.
          let list = PartitionList(indexes.map { partitions[$0].topicPartition })
          report(.of(rd_kafka_incremental_unassign(client.pointer, list.pointer), "give partitions up"))
        }
      }
    }
  }

  private func withCompanions(_ change: RebalanceInbox.Change) -> [TopicPartition] {
    let given = change.partitions.partitions
    return given + given.flatMap { options.companions($0) }
  }

  func report(_ error: KafkaError?) {
    if let error { handler?.consumerFailed(error) }
  }

  func own(_ starts: [(TopicPartition, Int64?)]) -> [AssignedPartition] {
    let indexes = starts.map { partitions.assign($0.0, startOffset: $0.1, client: client.pointer) }
    let assigned = indexes.map { partitions.assigned($0) }
    if !assigned.isEmpty { handler?.consumerAssigned(assigned) }
    return assigned
  }

  /// Asks the handler for its consent, then runs `body`, which unassigns the partitions.
  func disown(_ indexes: [Int], isLost: Bool, withinMilliseconds: Int = .max, _ body: @escaping () -> Void) {
    let going = indexes.map { partitions.assigned($0) }
    // A pause would outlive the assignment and stop the partition when it comes back.
    endSearches(indexes)
    resume(indexes)
    for index in indexes {
      partitions[index].state = isLost ? .absent : .revoking
      if isLost { partitions[index].generation &+= 1 }
    }
    let revocation = Revocation { [self] in
      revoking?.deadline.close()
      revoking = nil
      for index in indexes where partitions[index].state == .revoking {
        partitions[index].state = .absent
        partitions[index].generation &+= 1
      }
      body()
      afterRevocation.look()
      if !rebalances.isEmpty { waker?.wake() }
    }
    guard !going.isEmpty, let handler else { return revocation.finish() }
    let deadline = Timer(on: loop, after: min(options.revocationTimeoutMilliseconds, withinMilliseconds)) { revocation.finish() }
    revoking = (revocation, deadline)
    handler.consumerRevoked(going, isLost: isLost, revocation: revocation)
    if isLost { revocation.finish() }
  }

  // MARK: Committing

  /// Commits offsets of assigned partitions asynchronously. During a rebalance it waits for the group.
  ///
  /// - Parameters:
  ///   - offsets: at most one for each partition. Those of an earlier generation are not sent and fail with `notOwned`.
  ///   - completion: called once on the loop with the errors of failed commits, also if the consumer closes first.
  func commit(_ offsets: [CommitOffset], completion: @escaping ([CommitOffset: KafkaError]) -> Void) {
    loop.preconditionOnLoop()
    guard let commits else {
      return completion(Dictionary(offsets.map { ($0, KafkaError(.closed, "commit")) }) { first, _ in first })
    }
    commits.add(offsets, completion)
  }

  // MARK: Closing

  /// How long a consumer may take to close, unless its owner says otherwise.
  public static let standardCloseMilliseconds = 15_000

  /// Closes the consumer. Revokes its partitions with the handler's consent, leaves the group, and frees everything off the loop.
  ///
  /// Call it from the loop's actor. A batch in use keeps its memory; the last one frees the rest.
  ///
  /// - Parameter milliseconds: the longest wait. Unfinished steps continue by themselves.
  /// - Returns: whether all steps finished in time, and a static member has left. Otherwise others get its partitions when its session ends.
  @discardableResult
  public func close(withinMilliseconds milliseconds: Int = standardCloseMilliseconds) async -> Bool {
    loop.preconditionOnLoop()
    guard state == .open else { return await ended.wait() }
    state = .closing
    let ended = ended
    let deadline = Deadline(on: loop, after: milliseconds)
    let patience = Timer(on: loop, after: milliseconds) { ended.open(false) }
    if let revoking, deadline.left < options.revocationTimeoutMilliseconds { revoking.deadline.start(after: deadline.left) }
    await afterRevocation.wait { revoking == nil }
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      disown(partitions.ownedIndexes, isLost: false, withinMilliseconds: deadline.left) { continuation.resume() }
    }
    commits?.sendHeld()
    await commits?.settled(withinMilliseconds: min(options.revocationTimeoutMilliseconds, deadline.left))
    end()
    let inTime = await ended.wait()
    patience.close()
    return inTime
  }

  private func end() {
    state = .closed
    for each in searches.values { each.search.stop() }
    searches = [:]
    searchTimer?.close()
    searchTimer = nil
    rebalances.close(answeringFor: client.pointer)
    for place in 0..<gathered { rd_kafka_message_destroy(scratch[place].message) }
    gathered = 0
    commits?.close()
    commits = nil
    partitions.releaseTopics()
    pollTimer?.close()
    pollTimer = nil
    waker?.close()
    waker = nil
    rd_kafka_queue_destroy(events)
    handler = nil
    let ended = ended
    client.end(leavingGroup: true, discarding: [group, records]) { ended.open($0) }
  }

  /// Undoes the initializer's first steps after its last one has failed.
  private func abandon() {
    state = .closed
    handler = nil
    commits = nil
    rd_kafka_queue_destroy(events)
    client.end(leavingGroup: false, discarding: [group, records])
  }
}
