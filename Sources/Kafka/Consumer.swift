import CRdKafka
public import EventLoop
import Synchronization

/// A consumer on a loop: loop-confined, in a group (`subscribe`) or with partitions of its own choice (`assign`).
///
/// It always polls, so `max.poll.interval.ms` never passes while the loop turns; back-pressure is `hold`, and `pause` for some of the
/// partitions. No offset is committed by itself: see `OffsetCommitter`. It is ended by `close` and only by it; until then it keeps its
/// handler and itself alive.
///
/// - Note: librdkafka 2.0.2 can lose records when a rebalance meets a `rd_kafka_consume_batch_queue` call that holds more than one
///   (its change log, 2.0.0 "known issues", mended in 2.1.0), so messages are taken one per call and gathered here; the other way
///   round it can fetch records again that were given already (its issue 4636), which are dropped here by their offsets.
public final class Consumer {
  /// How a consumer reads.
  public struct Options: Sendable {
    /// The group; nil for a consumer that only uses `assign`.
    public var group: String?
    /// The name of a static member, which keeps its partitions over a quick restart; unique in the group.
    public var instanceID: String?
    /// Where reading begins when the group has committed nothing: at the oldest record, else at the newest.
    public var beginsAtEarliest = true
    /// Whether the handler is told when a partition's end is reached.
    public var reportsPartitionEnd = false
    /// What a fetch waits for, in bytes, and how long for at most, in milliseconds: with one byte it brings the first record at once and
    /// often alone, with many it waits for company. The embedded broker answers whatever there is, and looks once in that time.
    public var fetch: (bytes: Int, waitMilliseconds: Int) = (1, 100)
    /// Records taken in one turn of the loop at most.
    public var recordsPerTurn = 1_000
    /// Partitions of the group are offered to the handler, who says by `begin` where reading starts, instead of being read at once from
    /// the offset that the group has committed. Works with cooperative assignment only.
    public var offersPartitions = false
    /// Partitions of other topics that come and go with one of the group's, as if the group had given them: what belongs together stays
    /// together, whatever the group's strategy balances. Only with `offersPartitions`.
    public var companions: @Sendable (TopicPartition) -> [TopicPartition] = { _ in [] }
    /// How long the handler may take to consent to a revocation, in milliseconds.
    public var revocationTimeoutMilliseconds = 5_000

    /// After this long without a word from it the group gives a dead member's partitions to others, in milliseconds. Brokers allow 6 s
    /// and more unless their `group.min.session.timeout.ms` says otherwise.
    public var sessionTimeoutMilliseconds = 6_000

    /// Options of a consumer, of a group or of none.
    public init(group: String? = nil) { self.group = group }
  }

  enum State { case open, closing, closed }

  /// The loop on which it lives.
  public let loop: EventLoop
  /// Gets librdkafka's log.
  public var onLog: ((KafkaLogLine) -> Void)?
  /// A short text that the group keeps beside a partition's committed offset, given the partition's index; nil for none.
  public var commitNote: ((_ index: Int) -> String?)?
  /// Gets librdkafka's statistics as JSON text, as often as the configuration says; valid during the call.
  public var onStatistics: ((UnsafeRawBufferPointer) -> Void)?

  let client: ClientHandle
  var partitions = ConsumerPartitions()
  /// Whether no records are taken, from `hold` to `release`.
  public private(set) var isHeld = false
  private(set) var handler: (any ConsumerHandler)?
  let options: Options
  let configuration: KafkaConfiguration
  /// Searches for the ends of batches that cannot be read, by the partitions' indexes.
  var searches: [Int: Search] = [:]
  var searchTimer: Timer?
  private let rebalances = RebalanceInbox()
  // What the group says, records, and all else. Records have a queue of their own: who takes none for a while still hears its group.
  private let group: OpaquePointer
  private let records: OpaquePointer
  private let events: OpaquePointer
  private var queues: [OpaquePointer] { [group, records, events] }
  private var pipe: WakePipe?
  /// Polls when nothing comes: librdkafka takes a consumer that does not for a hanging one, and has it leave its group.
  private var pollTimer: Timer?
  private var scratch: UnsafeMutablePointer<RecordBatch.Entry>
  private var gathered = 0
  /// Partitions whose ends were reached in the batch that is being gathered.
  private var reachedEnds: [(partition: AssignedPartition, offset: Int64)] = []
  private(set) var state = State.open
  private(set) var revoking: (revocation: Revocation, deadline: Timer)?
  /// The brokers are asked whether topics were made again.
  var isLookingForReplaced = false
  private var commits: CommitRequests?
  private var afterRevocation: [CheckedContinuation<Void, Never>] = []
  private let ended = Latch()

  /// Makes a consumer that reads nothing yet.
  ///
  /// - Throws: an error that names the property when the configuration is wrong.
  public init(on loop: EventLoop, _ configuration: KafkaConfiguration, _ options: Options, handler: any ConsumerHandler) throws(KafkaError)
  {
    loop.preconditionOnLoop()
    self.loop = loop
    self.options = options
    self.configuration = configuration
    var defaults = [
      "group.id": options.group ?? "\(configuration.clientID).ungrouped",
      "partition.assignment.strategy": "cooperative-sticky",
      "session.timeout.ms": String(options.sessionTimeoutMilliseconds),
      "heartbeat.interval.ms": String(max(1, options.sessionTimeoutMilliseconds / 6)),
      "auto.offset.reset": options.beginsAtEarliest ? "earliest" : "latest",
      "enable.auto.commit": "false",
      "enable.auto.offset.store": "false",
      // Without it a flipped bit may have librdkafka fetch the same batch for ever, and say nothing.
      "check.crcs": "true",
      "enable.partition.eof": options.reportsPartitionEnd ? "true" : "false",
      // What waits in memory, of all partitions together: librdkafka counts values alone and takes about a kilobyte more for each record, so
      // small ones are bound by their number. Fetching that passes a bound pauses for up to a second: both last for longer than that.
      "queued.min.messages": "200000",
      "queued.max.messages.kbytes": "131072",
      "fetch.min.bytes": String(options.fetch.bytes),
      "fetch.wait.max.ms": String(options.fetch.waitMilliseconds),
      // A fetch brings so much of each partition: with one partition and 200 ms to Kafka and back 40 MB/s, and a fifth of that by default.
      "fetch.message.max.bytes": "8388608",
      "socket.nagle.disable": "true",
      "allow.auto.create.topics": "false",
    ]
    if let instance = options.instanceID { defaults["group.instance.id"] = instance }
    let object = try configuration.object(defaults: defaults, forConsumer: true)
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
    self.handler = handler
    commits = CommitRequests(
      on: loop, client, queue: events, mustWait: { [self] in state == .open && rebalances.isJoining },
      name: { [self] in partitions.isCurrent($0) ? partitions[$0.partition].topicPartition : nil },
      note: { [self] in commitNote?($0.partition) })
    rd_kafka_set_log_queue(client.pointer, events)
    do {
      let pipe = try WakePipe(on: loop) { self.serve() }
      self.pipe = pipe
      for queue in queues { rd_kafka_queue_io_event_enable(queue, pipe.writeDescriptor, "k", 1) }
      pipe.wake()
      let pollTimer = Timer(on: loop) { pipe.wake() }
      pollTimer.start(after: Self.pollMilliseconds, repeating: Self.pollMilliseconds)
      self.pollTimer = pollTimer
    } catch {
      abandon()
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "make a consumer", message: "\(error)")
    }
  }

  deinit { scratch.deallocate() }

  // MARK: What to read

  /// Joins the group for these topics; partitions come by `consumerAssigned`, after about 3 s on the embedded broker.
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

  /// Well within any `max.poll.interval.ms`, which is five minutes by default.
  private static let pollMilliseconds = 1_000

  /// Takes no records until `release`; all else goes on. What was fetched ahead stays, and librdkafka fetches no more than it may keep.
  public func hold() {
    loop.preconditionOnLoop()
    isHeld = true
  }

  /// Takes records again after `hold`.
  public func release() {
    loop.preconditionOnLoop()
    guard isHeld else { return }
    isHeld = false
    pipe?.wake()
  }

  /// Has librdkafka read partitions, and put their records into the queue of records, and not into the group's.
  ///
  /// - Parameter assign: gives them to librdkafka, and comes back when its thread has taken them.
  func read(_ partitions: [TopicPartition], _ assign: () -> KafkaError?) -> KafkaError? {
    route(partitions)
    if let error = assign() { return error }
    // Where it stops reading a partition, librdkafka forgets the queue. It does so on its thread, for one that has just been given up perhaps
    // behind the first of these calls, and in any case before it takes this assignment: else its records would lie where nobody looks.
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
      // Callbacks come within this call.
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
    // librdkafka wakes only when a queue was empty.
    pipe?.wake()
  }

  @inline(__always)
  private func take(_ message: UnsafeMutablePointer<rd_kafka_message_t>) {
    let index = partitions.index(topic: message.pointee.rkt, partition: message.pointee.partition)
    guard message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else { return takeError(message, index) }
    // Behind a batch that cannot be read librdkafka may go anywhere.
    guard index >= 0, partitions[index].state == .owned, !partitions[index].isSearched, state == .open else {
      return rd_kafka_message_destroy(message)
    }
    let offset = message.pointee.offset
    var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    let timestamp = rd_kafka_message_timestamp(message, &kind)
    if offset < partitions[index].position.next {
      let isOfAnotherLog = partitions[index].position.isOfAnotherLog(offset, at: timestamp, end: end(of: index))
      if isOfAnotherLog { beganAgain(index) }
      // What is on offer is read again when it begins.
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
      // Told after the batch, which it does not cut short.
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

  /// The end of a partition's log as the last fetch has told it.
  func end(of index: Int) -> Int64? { Self.end(of: partitions[index].topicPartition, client.pointer) }

  /// The same, on any thread.
  static func end(of name: TopicPartition, _ client: OpaquePointer) -> Int64? {
    var low: Int64 = 0
    var high: Int64 = 0
    let code = rd_kafka_get_watermark_offsets(client, name.topic, name.partition, &low, &high)
    return code == RD_KAFKA_RESP_ERR_NO_ERROR && high >= 0 ? high : nil
  }

  /// A topic that is gone may be made again with as many records as were read of the former one: its partitions on offer start again, so
  /// that the record before their position shows which it is.
  private func lookForGoneTopics() {
    // While partitions are given up whatever is unassigned counts as the consent to that; a topic that stays gone is told of again.
    guard rebalances.hasGoneTopics, options.offersPartitions, revoking == nil else { return }
    let topics = rebalances.takeGoneTopics()
    // One of which nothing has come yet has begun so.
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
      let list = change.partitions.pointer
      let isCooperative = rd_kafka_rebalance_protocol(client.pointer).map { String(cString: $0) } == "COOPERATIVE"
      if change.isAssignment, options.offersPartitions {
        // The group waits for an answer of any kind; what is read is added when the handler has said where to begin.
        let none = PartitionList(capacity: 0)
        withExtendedLifetime(none) { report(.of(rd_kafka_incremental_assign(client.pointer, none.pointer), "take partitions")) }
        offer(withCompanions(change).map { partitions.offer($0, client: client.pointer) })
      } else if change.isAssignment {
        let operation = "take partitions"
        report(
          read(change.partitions.partitions) {
            isCooperative
              ? .of(rd_kafka_incremental_assign(client.pointer, list), operation) : .of(rd_kafka_assign(client.pointer, list), operation)
          })
        _ = own(change.partitions.partitions.map { ($0, nil) })
      } else {
        let operation = "give partitions up"
        let known = withCompanions(change).compactMap { partitions.index(of: $0) }
        for index in known where partitions[index].state == .offered { partitions.withdraw(index) }
        let indexes = known.filter { partitions[$0].state == .owned }
        disown(indexes, isLost: change.isLost) { [self] in
          // What was only offered was never assigned here, and librdkafka refuses a list with anything that is not.
          let list = PartitionList(indexes.map { partitions[$0].topicPartition })
          report(
            isCooperative
              ? .of(rd_kafka_incremental_unassign(client.pointer, list.pointer), operation)
              : .of(rd_kafka_assign(client.pointer, nil), operation))
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

  /// Asks the handler for its consent, then has `body` give the partitions up.
  func disown(_ indexes: [Int], isLost: Bool, withinMilliseconds: Int = .max, _ body: @escaping () -> Void) {
    let going = indexes.map { partitions.assigned($0) }
    // A pause would outlive the assignment and hold the partition when it comes back.
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
      for waiter in afterRevocation { waiter.resume() }
      afterRevocation = []
      if !rebalances.isEmpty { pipe?.wake() }
    }
    guard !going.isEmpty, let handler else { return revocation.finish() }
    let deadline = Timer(on: loop) { revocation.finish() }
    deadline.start(after: min(options.revocationTimeoutMilliseconds, withinMilliseconds))
    revoking = (revocation, deadline)
    handler.consumerRevoked(going, isLost: isLost, revocation: revocation)
    if isLost { revocation.finish() }
  }

  // MARK: Committing

  /// Commits offsets of partitions that are assigned, asynchronously; while the group forms again it waits for that.
  ///
  /// - Parameters:
  ///   - offsets: at most one for each partition; those of an earlier generation are not sent and come back as `notOwned`.
  ///   - completion: called once, on the loop, with the errors of those that failed; also when the consumer closes first.
  public func commit(_ offsets: [CommitOffset], completion: @escaping ([CommitOffset: KafkaError]) -> Void) {
    loop.preconditionOnLoop()
    guard let commits else {
      return completion(Dictionary(offsets.map { ($0, KafkaError(.closed, "commit")) }) { first, _ in first })
    }
    commits.add(offsets, completion)
  }

  // MARK: Closing

  /// Ends the consumer: revokes its partitions with the handler's consent, leaves the group, and frees everything off the loop.
  ///
  /// Call it from the loop's actor. Batches that are held keep their memory; the last of them lets the rest be freed.
  ///
  /// - Parameter milliseconds: how long to wait at most; what is not done by then goes on by itself.
  /// - Returns: whether all was done in time.
  @discardableResult
  public func close(withinMilliseconds milliseconds: Int = 15_000) async -> Bool {
    loop.preconditionOnLoop()
    guard state == .open else { return await ended.wait() }
    state = .closing
    let ended = ended
    let deadline = Deadline(on: loop, after: milliseconds)
    let patience = Timer(on: loop) { ended.open(false) }
    patience.start(after: milliseconds)
    await withCheckedContinuation { continuation in
      // Asked here, for the loop may turn between a question and an await.
      guard let revoking else { return continuation.resume() }
      if deadline.left < options.revocationTimeoutMilliseconds { revoking.deadline.start(after: deadline.left) }
      afterRevocation.append(continuation)
    }
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
    rebalances.close()
    for place in 0..<gathered { rd_kafka_message_destroy(scratch[place].message) }
    gathered = 0
    commits?.close()
    commits = nil
    partitions.releaseTopics()
    for queue in queues { rd_kafka_queue_io_event_enable(queue, -1, nil, 0) }
    rd_kafka_queue_destroy(events)
    pollTimer?.close()
    pollTimer = nil
    pipe?.close()
    pipe = nil
    handler = nil
    let ended = ended
    client.end(leavingGroup: true, discarding: [group, records]) { ended.open(true) }
  }

  /// Undoes the initializer's beginnings when its last step has failed.
  private func abandon() {
    state = .closed
    handler = nil
    commits = nil
    rd_kafka_queue_destroy(events)
    client.end(leavingGroup: false, discarding: [group, records]) {}
  }
}
