import CRdKafka
public import EventLoop

/// A producer's handle of a topic: made once, used for every record.
public final class ProducerTopic {
  /// The topic's name.
  public let name: String
  fileprivate var pointer: OpaquePointer?

  fileprivate init(name: String, pointer: OpaquePointer) {
    self.name = name
    self.pointer = pointer
  }
}

/// A producer on a loop, with its delivery reports in batches.
///
/// Records with the same key and partition keep their order, also during retries, unless `isIdempotent` is off or `givesAgain` is on. A
/// record without a partition gets the partition of its key, as in Java's clients (`murmur2_random`). Only `close` ends the producer.
public final class Producer {
  /// How a producer sends.
  public struct Options: Sendable {
    /// How long a record waits to be sent together with others, in milliseconds.
    public var lingerMilliseconds = 5
    /// Whether the broker recognises retries. If not, a record may arrive twice or out of order. But any number of requests may then wait
    /// for a broker's answer (five otherwise, of one partition each), and the client has no fatal errors.
    public var isIdempotent = true
    /// Whether an `unconfirmed` record is produced again, after later records, perhaps for a second time. For records whose order and
    /// number do not matter. It does not apply to records of `send`, nor while the producer closes.
    /// A record of a batch that was too large is produced again alone in the same way. It is reported as `messageTooLarge` only if it is
    /// refused alone.
    public var givesAgain = false
    /// The brokers' limit of a batch of the producer's topics, in bytes; see `WriteLimits`.
    public var batchBytes = WriteLimits.standardBatchBytes
    /// Whether each batch has only one record.
    var isAlone = false
    /// How long sending is tried before the report `messageTimedOut`, in milliseconds.
    public var messageTimeoutMilliseconds = 60_000
    /// The most records in flight. Beyond it `produce` answers `full`.
    public var maximumRecords = 100_000
    /// The most bytes of keys and values in flight. Beyond it `produce` answers `full`.
    public var maximumBytes = 256 << 20
    /// About how many reports are taken in one turn of the loop.
    var reportsPerTurn = 4_000

    /// The defaults above.
    public init() {}
  }

  /// The answer to `produce`.
  public enum Outcome: Sendable {
    /// The record is accepted, and its report will come.
    case taken
    /// A limit is reached: try again after `producerHasRoom`.
    case full
    /// It cannot be sent. It is too large, the partition does not exist, or the producer is closed.
    case refused(KafkaError)
  }

  private enum State { case open, closing, closed }

  /// The producer's loop.
  public let loop: EventLoop
  /// Gets librdkafka's log.
  public var onLog: ((KafkaLogLine) -> Void)?
  /// Records that were accepted and not reported yet.
  public private(set) var inFlight = 0
  /// Bytes of their keys and values.
  public private(set) var bytesInFlight = 0
  /// The number of all reported records.
  private var reported: Int64 = 0
  private var age = QueueAge()
  private var refusals = TopicRefusals()

  /// The topics that have refused all their records for seconds.
  public func refusingTopics(at milliseconds: Int64) -> [TopicRefusals.Lasting] {
    refusals.lasting(at: milliseconds) + (alone?.refusingTopics(at: milliseconds) ?? [])
  }

  /// How long the oldest record in flight has been so, in milliseconds, at least. Call it once a second.
  public func oldestInFlight(at milliseconds: Int64) -> Int64 {
    age.observe(given: reported + Int64(inFlight), reported: reported, at: milliseconds)
  }

  /// The most records in flight.
  public var maximumInFlight: Int { options.maximumRecords }
  /// The most bytes in flight.
  public var maximumBytesInFlight: Int { options.maximumBytes }

  // Opaques of `send` have this bit, opaques of `produce` do not.
  private static let awaitedBit: UInt64 = 1 << 63

  private let client: ClientHandle
  private let configuration: KafkaConfiguration
  private let options: Options
  private var handler: (any ProducerHandler)?
  private let events: OpaquePointer
  private var waker: Waker?
  private var state = State.open
  private let fields: UnsafeMutablePointer<rd_kafka_vu_t>
  private static let fieldCount = 8
  private let scratch: UnsafeMutablePointer<UnsafePointer<rd_kafka_message_t>?>
  private static let scratchCount = 1_000
  private var reports: [DeliveryReport] = []
  private var owesRoom = false
  private var topics: [String: ProducerTopic] = [:]
  private var awaited: [UInt64: Awaited] = [:]
  /// Made when a broker refuses a batch as too large.
  private var alone: SingleRecordSender?
  private var lastAwaited: UInt64 = 0
  private let flushing: LoopWaiters
  private let ended = Latch()

  /// A record that `send` waits for.
  private struct Awaited {
    let continuation: CheckedContinuation<Result<DeliveryReport, KafkaError>, Never>
    let mayGoAlone: Bool
  }

  /// Makes a producer.
  ///
  /// - Parameter handler: nil for a producer whose reports nobody needs, beside those of `send`.
  /// - Throws: an error that names the property if the configuration is wrong.
  public init(
    on loop: EventLoop, _ configuration: KafkaConfiguration, _ options: Options = Options(), handler: (any ProducerHandler)? = nil
  ) throws(KafkaError) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.configuration = configuration
    self.options = options
    let object = try configuration.object(
      defaults: [
        "enable.idempotence": options.isIdempotent ? "true" : "false",
        "acks": "all",
        // The brokers' default minus the bytes around a record in its batch. librdkafka's own default is smaller.
        "message.max.bytes": "1048000",
        "linger.ms": String(options.lingerMilliseconds),
        "message.timeout.ms": String(options.messageTimeoutMilliseconds),
        "batch.num.messages": "10000",
        "batch.size": String(Self.batchSize(options.batchBytes)),
        "partitioner": "murmur2_random",
        "socket.nagle.disable": "true",
        // The limits are checked here, so that `full` is answered before headers are given away. librdkafka's limits are higher.
        "queue.buffering.max.messages": "0",
        "queue.buffering.max.kbytes": "2147483647",
      ], forConsumer: false)
    rd_kafka_conf_set_events(object.pointer, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_ERROR)
    client = try ClientHandle(RD_KAFKA_PRODUCER, object)
    guard let events = rd_kafka_queue_get_main(client.pointer) else { preconditionFailure("a client has a main queue") }
    self.events = events
    self.handler = handler
    flushing = LoopWaiters(on: loop)
    fields = .allocate(capacity: Self.fieldCount)
    fields.initialize(repeating: rd_kafka_vu_t(), count: Self.fieldCount)
    scratch = .allocate(capacity: Self.scratchCount)
    rd_kafka_set_log_queue(client.pointer, events)
    do {
      let stop = { rd_kafka_queue_cb_event_enable(events, nil, nil) }
      let waker = try Waker(on: loop, stop: stop) { self.serve() }
      self.waker = waker
      rd_kafka_queue_cb_event_enable(events, { _, waker in Waker.wake(waker) }, waker.pointer)
      waker.wake()
    } catch {
      state = .closed
      rd_kafka_queue_destroy(events)
      client.end(leavingGroup: false)
      throw KafkaError(RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "make a producer", message: "\(error)")
    }
  }

  deinit {
    fields.deallocate()
    scratch.deallocate()
  }

  /// The most bytes of a batch before compression, so that no broker refuses a batch of several records. librdkafka also counts the request
  /// around it, and sends a batch uncompressed if compression would enlarge it.
  private static func batchSize(_ limit: Int) -> Int { min(1_000_000, max(1, limit - 512)) }

  /// Makes the handle of a topic, one for each name. It does not ask whether the topic exists.
  public func topic(_ name: String) throws(KafkaError) -> ProducerTopic {
    loop.preconditionOnLoop()
    guard state == .open else { throw KafkaError(.closed, "use topic \(name)", message: "the producer is closed") }
    if let topic = topics[name] { return topic }
    guard let pointer = rd_kafka_topic_new(client.pointer, name, nil) else {
      throw KafkaError(rd_kafka_last_error(), "use topic \(name)")
    }
    let topic = ProducerTopic(name: name, pointer: pointer)
    topics[name] = topic
    return topic
  }

  /// Whether `produce` would accept a record.
  public var hasRoom: Bool { inFlight < options.maximumRecords && bytesInFlight < options.maximumBytes }

  // MARK: Producing

  /// Produces a record: copies it, allocates no Swift memory, and returns at once.
  ///
  /// - Parameters:
  ///   - topic: the target topic.
  ///   - partition: nil lets the key decide; without a key it is random.
  ///   - key: nil for a record without one.
  ///   - value: nil for a tombstone.
  ///   - headers: emptied if the record is accepted, else left alone.
  ///   - timestamp: milliseconds since 1970; nil for now.
  ///   - opaque: returned in the record's report; below 2⁶³.
  public func produce(
    _ topic: ProducerTopic, partition: Int32? = nil, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?,
    headers: RecordHeaders? = nil, timestamp: Int64? = nil, opaque: UInt64
  ) -> Outcome {
    precondition(opaque & Self.awaitedBit == 0, "an opaque's highest bit is the producer's")
    guard hasRoom else {
      owesRoom = true
      return .full
    }
    return give(topic, partition, key, value, headers, timestamp, opaque)
  }

  private func give(
    _ topic: ProducerTopic, _ partition: Int32?, _ key: UnsafeRawBufferPointer?, _ value: UnsafeRawBufferPointer?,
    _ headers: RecordHeaders?, _ timestamp: Int64?, _ opaque: UInt64
  ) -> Outcome {
    loop.preconditionOnLoop()
    guard state == .open, let pointer = topic.pointer else {
      return .refused(KafkaError(.closed, "produce to \(topic.name)", message: "the producer is closed"))
    }
    if let error = enqueue(pointer, partition ?? RD_KAFKA_PARTITION_UA, key, value, headers?.pointer, timestamp, opaque) {
      let refusal = KafkaError(consuming: error, "produce to \(topic.name)")
      guard refusal.code == .queueFull else {
        refusals.refused(topic.name, refusal.code, at: SteadyClock.milliseconds())
        return .refused(refusal)
      }
      owesRoom = true
      return .full
    }
    headers?.release()
    inFlight += 1
    bytesInFlight += (key?.count ?? 0) + (value?.count ?? 0)
    return .taken
  }

  /// Makes librdkafka copy a record and take its headers. On an error the caller frees the error and keeps the headers.
  private func enqueue(
    _ topic: OpaquePointer, _ partition: Int32, _ key: UnsafeRawBufferPointer?, _ value: UnsafeRawBufferPointer?, _ headers: OpaquePointer?,
    _ timestamp: Int64?, _ opaque: UInt64
  ) -> OpaquePointer? {
    var count = 0
    func add(_ type: rd_kafka_vtype_t, _ set: (UnsafeMutablePointer<rd_kafka_vu_t>) -> Void) {
      fields[count].vtype = type
      set(fields + count)
      count += 1
    }
    add(RD_KAFKA_VTYPE_RKT) { $0.pointee.u.rkt = topic }
    add(RD_KAFKA_VTYPE_PARTITION) { $0.pointee.u.i32 = partition }
    add(RD_KAFKA_VTYPE_MSGFLAGS) { $0.pointee.u.i = RD_KAFKA_MSG_F_COPY }
    add(RD_KAFKA_VTYPE_OPAQUE) { $0.pointee.u.ptr = UnsafeMutableRawPointer(bitPattern: UInt(opaque)) }
    // An empty key or value may have no address, and librdkafka would take it for a missing one. So it gets the address of the fields.
    if let key { add(RD_KAFKA_VTYPE_KEY) { $0.set(key, orEmptyAt: fields) } }
    if let value { add(RD_KAFKA_VTYPE_VALUE) { $0.set(value, orEmptyAt: fields) } }
    if let headers { add(RD_KAFKA_VTYPE_HEADERS) { $0.pointee.u.headers = headers } }
    if let timestamp { add(RD_KAFKA_VTYPE_TIMESTAMP) { $0.pointee.u.i64 = timestamp } }
    return rd_kafka_produceva(client.pointer, fields, count)
  }

  /// Whether librdkafka reports a record as written, but without an offset.
  ///
  /// An idempotent librdkafka counts a batch as written if a later one of its partition is, since a broker refuses a gap in the sequence.
  /// But a broker that does not know the producer in a partition accepts any first sequence (KAFKA-14359). If the producer's first batch
  /// was refused while its second was on its way, the first is lost. Its records have no offset.
  private func isUnconfirmed(_ message: UnsafePointer<rd_kafka_message_t>) -> Bool {
    message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR && message.pointee.offset < 0
      // Without acknowledgements (`acks=0`) no record has an offset.
      && rd_kafka_message_status(message) == RD_KAFKA_MSG_STATUS_PERSISTED
  }

  /// Produces a record again with its first timestamp.
  ///
  /// - Returns: why it was not accepted; nil if it was, and its report will come.
  private func giveAgain(_ message: UnsafePointer<rd_kafka_message_t>) -> KafkaError.Code? {
    let record = message.pointee
    var (ofMessage, headers): (OpaquePointer?, OpaquePointer?) = (nil, nil)
    var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
    if rd_kafka_message_headers(message, &ofMessage) == RD_KAFKA_RESP_ERR_NO_ERROR, let ofMessage {
      headers = rd_kafka_headers_copy(ofMessage)
    }
    let timestamp = rd_kafka_message_timestamp(message, &kind)
    let error = enqueue(
      record.rkt, record.partition, record.keyBytes, record.valueBytes, headers, timestamp, UInt64(UInt(bitPattern: record._private)))
    guard let error else { return nil }
    if let headers { rd_kafka_headers_destroy(headers) }
    return KafkaError(consuming: error, "produce a record again").code
  }

  /// Produces one record and waits for its report. For cold paths.
  ///
  /// - Parameter mayGoAlone: whether to send it once more if a broker refuses its batch, alone and after records produced meanwhile.
  /// - Returns: the record's partition and offset.
  /// - Throws: the failure; `queueFull` if a limit is reached.
  public func send(
    _ topic: ProducerTopic, partition: Int32? = nil, key: [UInt8]?, value: [UInt8]?, headers: RecordHeaders? = nil,
    timestamp: Int64? = nil, mayGoAlone: Bool = false
  ) async throws(KafkaError) -> (partition: Int32, offset: Int64) {
    loop.preconditionOnLoop()
    let result: Result<DeliveryReport, KafkaError> = await withCheckedContinuation { continuation in
      // Produced here, since other tasks may run before the await and the report may arrive meanwhile.
      lastAwaited += 1
      let opaque = lastAwaited | Self.awaitedBit
      let outcome: Outcome =
        hasRoom
        ? withOptionalBytes(key) { key in
          withOptionalBytes(value) { value in give(topic, partition, key, value, headers, timestamp, opaque) }
        } : .full
      switch outcome {
      case .taken: awaited[opaque] = Awaited(continuation: continuation, mayGoAlone: mayGoAlone)
      case .full: continuation.resume(returning: .failure(KafkaError(.queueFull, "produce to \(topic.name)")))
      case .refused(let error): continuation.resume(returning: .failure(error))
      }
    }
    let report = try result.get()
    if let failure = report.failure { throw KafkaError(failure, "produce to \(topic.name)") }
    return (report.partition, report.offset)
  }

  // MARK: The loop's turn

  private func serve() {
    guard state != .closed else { return }
    var served = 0
    while let event = rd_kafka_queue_poll(events, 0) {
      if rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR {
        served += take(event)
      } else {
        client.dispatch(event, log: onLog) { handler?.producerFailed($0) }
      }
      rd_kafka_event_destroy(event)
      guard served < options.reportsPerTurn else {
        waker?.wake()
        break
      }
    }
    tellOfRoom()
  }

  private func tellOfRoom() {
    if owesRoom, state == .open, inFlight <= options.maximumRecords / 2, bytesInFlight <= options.maximumBytes / 2 {
      owesRoom = false
      handler?.producerHasRoom()
    }
    if inFlight == 0 { flushing.look() }
  }

  private func take(_ event: OpaquePointer) -> Int {
    var (taken, unconfirmed) = (0, 0)
    defer { if unconfirmed > 0 { tell(unconfirmed: unconfirmed) } }
    while true {
      let count = rd_kafka_event_message_array(event, scratch, Self.scratchCount)
      guard count > 0 else { return taken }
      taken += count
      reports.removeAll(keepingCapacity: true)
      for place in 0..<count {
        guard let pointer = scratch[place] else { continue }
        let message = pointer.pointee
        let opaque = UInt64(UInt(bitPattern: message._private))
        let isAwaited = opaque & Self.awaitedBit != 0
        var failure = message.err == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError.Code(message.err)
        if isUnconfirmed(pointer) {
          unconfirmed += 1
          let isGivenAgain = options.givesAgain && state == .open && !isAwaited
          failure = isGivenAgain ? giveAgain(pointer) : .unconfirmed
          if failure == nil { continue }
        }
        if failure == .messageTooLarge, isAwaited ? awaited[opaque]?.mayGoAlone == true : options.givesAgain, !options.isAlone {
          failure = sendAlone(pointer)
          if failure == nil { continue }
        }
        if let failure {
          refusals.refused(String(cString: rd_kafka_topic_name(message.rkt)), failure, at: SteadyClock.milliseconds())
        } else if !refusals.isEmpty {
          refusals.took(String(cString: rd_kafka_topic_name(message.rkt)))
        }
        conclude(
          DeliveryReport(opaque: opaque, partition: message.partition, offset: message.offset, failure: failure),
          bytes: message.len + message.key_len)
      }
      if !reports.isEmpty { handler?.producerDelivered(reports) }
    }
  }

  /// Collects a report for the handler, or resumes the caller of `send`.
  private func conclude(_ report: DeliveryReport, bytes: Int) {
    reported += 1
    inFlight -= 1
    bytesInFlight -= bytes
    if report.opaque & Self.awaitedBit == 0 {
      reports.append(report)
    } else {
      awaited.removeValue(forKey: report.opaque)?.continuation.resume(returning: .success(report))
    }
  }

  /// Sends a record once more in a batch of its own, even while the producer closes.
  ///
  /// - Returns: why it was not accepted, which says nothing on its size; nil if it was, and its report will come.
  private func sendAlone(_ message: UnsafePointer<rd_kafka_message_t>) -> KafkaError.Code? {
    do throws(KafkaError) {
      if alone == nil { alone = try makeAlone() }
      return alone?.send(message)?.code
    } catch { return error.code }
  }

  private func makeAlone() throws(KafkaError) -> SingleRecordSender {
    onLog?(
      KafkaLogLine(
        severity: 4, facility: "BATCHSIZE",
        message:
          "a batch was larger than the topic's max.message.bytes; its records are sent once more, each alone. A new start makes smaller batches"
      ))
    return try SingleRecordSender(on: loop, configuration, options, onLog: onLog) { [unowned self] in
      handler?.producerFailed($0)
    } onReports: { [unowned self] sent in
      reports.removeAll(keepingCapacity: true)
      for (report, bytes) in sent { conclude(report, bytes: bytes) }
      if !reports.isEmpty { handler?.producerDelivered(reports) }
      tellOfRoom()
    }
  }

  /// Logs under the name that librdkafka uses for it.
  private func tell(unconfirmed count: Int) {
    let text = "only a later record's success acknowledged \(ReadableText.count(count, "record")): they count as unconfirmed"
    onLog?(KafkaLogLine(severity: 4, facility: "IMPLICITACK", message: text))
  }

  /// Refreshes the number of the topics' partitions. `produce` refuses a partition that the client does not know.
  public func refresh() async throws(KafkaError) {
    loop.preconditionOnLoop()
    try await client.ask("ask for the topics' partitions", for: 5_000) { client, timeout throws(KafkaError) in
      var metadata: UnsafePointer<rd_kafka_metadata>?
      // Without a topic it asks for all topics of the client.
      try check(rd_kafka_metadata(client, 0, nil, &metadata, timeout), "ask for the topics' partitions")
      if let metadata { rd_kafka_metadata_destroy(metadata) }
    }
  }

  // MARK: Flushing and closing

  /// Waits until no record is in flight, or until the time is over. Call it from the loop's actor.
  ///
  /// - Returns: whether no record was in flight at the end.
  public func flush(withinMilliseconds milliseconds: Int) async -> Bool {
    loop.preconditionOnLoop()
    guard inFlight > 0 else { return true }
    // Without a wait it only sends lingering records at once.
    rd_kafka_flush(client.pointer, 0)
    await flushing.wait(withinMilliseconds: milliseconds) { inFlight == 0 }
    return inFlight == 0
  }

  /// Drops unacknowledged records. The reports say `purged`, or `purgedInFlight` if a broker may have the record.
  func purge() {
    loop.preconditionOnLoop()
    guard state != .closed else { return }
    rd_kafka_purge(client.pointer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING)
    alone?.purge()
  }

  /// Sends all records in flight, reports them, purges the rest, and frees everything off the loop. Call it from the loop's actor.
  ///
  /// - Parameter milliseconds: the time for records in flight. Freeing may take a second more.
  /// - Returns: whether every record was delivered and all was freed in time.
  @discardableResult
  public func close(withinMilliseconds milliseconds: Int = 10_000) async -> Bool {
    loop.preconditionOnLoop()
    guard state == .open else { return await ended.wait() }
    state = .closing
    var isComplete = await flush(withinMilliseconds: milliseconds)
    if !isComplete {
      purge()
      isComplete = await flush(withinMilliseconds: 1_000) && false
    }
    serve()
    await alone?.close(withinMilliseconds: 1_000)
    alone = nil
    state = .closed
    let unreported = awaited
    awaited = [:]
    for (opaque, awaited) in unreported {
      awaited.continuation.resume(returning: .success(DeliveryReport(opaque: opaque, partition: -1, offset: -1, failure: .purgedInFlight)))
    }
    for topic in topics.values {
      if let pointer = topic.pointer { rd_kafka_topic_destroy(pointer) }
      topic.pointer = nil
    }
    topics = [:]
    waker?.close()
    waker = nil
    rd_kafka_queue_destroy(events)
    handler = nil
    let (ended, complete) = (ended, isComplete)
    let deadline = Timer(on: loop, after: milliseconds + 1_000) { ended.open(false) }
    client.end(leavingGroup: false) { _ in ended.open(complete) }
    let inTime = await ended.wait()
    deadline.close()
    return inTime
  }
}

extension UnsafeMutablePointer<rd_kafka_vu_t> {
  /// Points at bytes. Bytes without an address become an empty field instead of a missing one.
  fileprivate func set(_ bytes: UnsafeRawBufferPointer, orEmptyAt empty: UnsafeMutablePointer<rd_kafka_vu_t>) {
    pointee.u.mem.ptr = UnsafeMutableRawPointer(mutating: bytes.baseAddress) ?? UnsafeMutableRawPointer(empty)
    pointee.u.mem.size = bytes.count
  }
}

/// Lends bytes, which may be missing.
public func withOptionalBytes<R>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> R) -> R {
  guard let bytes else { return body(nil) }
  return bytes.withUnsafeBytes { body($0) }
}
