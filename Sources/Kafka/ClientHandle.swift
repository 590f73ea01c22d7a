import CRdKafka
import EventLoop
import Glibc
import Synchronization

/// A line of librdkafka's log.
public struct KafkaLogLine: Sendable {
  /// syslog's severity: 0 emergency … 3 error, 4 warning, 5 notice, 6 information, 7 debug.
  public var severity: Int
  /// The part of librdkafka that wrote it: `FAIL`, `REBALANCE`, ….
  public var facility: String
  /// The text; librdkafka writes no passwords into it.
  public var message: String
}

/// The owner of one `rd_kafka_t`. `end` destroys it on a thread of its own; a deinitializer could hang.
///
/// - Note: `@unchecked Sendable` because `pointer` is constant and librdkafka allows every call on it from any thread.
///   A use that must not overlap with `destroy` calls `hold`: calls that block or come from other threads, and batches of records.
///   All other calls are the owner's, who makes none after `end`.
final class ClientHandle: @unchecked Sendable {
  let pointer: OpaquePointer
  /// The object of the client's callbacks, alive as long as the handle.
  private let rebalances: RebalanceInbox?
  /// Batches of records in use and blocking calls. The handle must outlive them.
  private let held = Atomic<Int>(0)
  private let isEnding = Atomic<Bool>(false)
  private let released: UnsafeMutablePointer<sem_t>
  /// Whether nobody takes the client's events, so that its questions look there why a broker refuses them.
  private let findsRefusals: Bool

  /// - Parameter findsRefusals: whether the client only asks. A question that a broker refuses by login or TLS throws what it has said.
  init(
    _ type: rd_kafka_type_t, _ configuration: ConfigurationObject, rebalances: RebalanceInbox? = nil, findsRefusals: Bool = false
  ) throws(KafkaError) {
    self.rebalances = rebalances
    self.findsRefusals = findsRefusals
    rebalances?.attach(to: configuration)
    if findsRefusals { rd_kafka_conf_set_events(configuration.pointer, RD_KAFKA_EVENT_ERROR) }
    let made: Result<OpaquePointer, KafkaError> = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
      text.baseAddress?.pointee = 0
      if let client = rd_kafka_new(type, configuration.pointer, text.baseAddress, text.count) { return .success(client) }
      let reason = text.baseAddress.map { String(cString: $0) } ?? ""
      return .failure(KafkaError(.invalidConfiguration, "make a Kafka client", message: reason))
    }
    pointer = try made.get()
    configuration.release()
    released = .allocate(capacity: 1)
    sem_init(released, 0, 0)
  }

  deinit {
    sem_destroy(released)
    released.deallocate()
  }

  /// Keeps the client from being destroyed. Not after `end`.
  func hold() { held.add(1, ordering: .sequentiallyConsistent) }

  /// Undoes a `hold`. The last one lets a waiting `end` continue.
  func release() {
    let left = held.subtract(1, ordering: .sequentiallyConsistent).newValue
    if left == 0, isEnding.load(ordering: .sequentiallyConsistent) { sem_post(released) }
  }

  /// Makes a non-blocking call on any thread; nil after `end`.
  func ifAlive<T>(_ body: (_ client: OpaquePointer) -> T) -> T? {
    // Holds first, then checks: an `end` that the check does not see waits for this hold.
    hold()
    defer { release() }
    return isEnding.load(ordering: .sequentiallyConsistent) ? nil : body(pointer)
  }

  /// Runs a blocking call on a thread of its own. The client's `end` waits for it.
  ///
  /// - Throws: `closed` after `end`, and what `body` throws.
  func call<T: Sendable>(
    _ operation: String, _ body: @escaping @Sendable (_ client: OpaquePointer) throws(KafkaError) -> T
  ) async throws(KafkaError) -> T {
    // Holds first, then checks: an `end` that the check does not see waits for this hold.
    hold()
    guard !isEnding.load(ordering: .sequentiallyConsistent) else {
      release()
      throw KafkaError(.closed, operation, message: "the client is closed")
    }
    return try await NamedThread.run("kafka-call") { [self] () -> Result<T, KafkaError> in
      defer { release() }
      do throws(KafkaError) {
        let answer = try body(pointer)
        // What was refused before is over.
        _ = refusal(operation)
        return .success(answer)
      } catch { return .failure(refusal(operation) ?? error) }
    }
  }

  /// Like `call`, for a question that may be repeated. It asks in short steps, so `end` need not wait long.
  ///
  /// - Parameter milliseconds: the longest time for an answer.
  func ask<T: Sendable>(
    _ operation: String, for milliseconds: Int32,
    _ body: @escaping @Sendable (_ client: OpaquePointer, _ milliseconds: Int32) throws(KafkaError) -> T
  ) async throws(KafkaError) -> T {
    try await call(operation) { [self] _ throws(KafkaError) in try patiently(operation, for: milliseconds, body) }
  }

  /// Asks in growing steps, and stops when the client is to end. The answer may never come.
  ///
  /// While a leader or a coordinator moves, the answer is an immediate error. It asks again after a pause.
  private func patiently<T>(
    _ operation: String, for milliseconds: Int32, _ ask: (_ client: OpaquePointer, _ milliseconds: Int32) throws(KafkaError) -> T
  ) throws(KafkaError) -> T {
    let end = SteadyClock.milliseconds() + Int64(milliseconds)
    var step = min(Self.firstStep, milliseconds)
    while true {
      do throws(KafkaError) {
        return try ask(pointer, step)
      } catch {
        if let refusal = refusal(operation) { throw refusal }
        let isMoving = error.isMoving
        let left = Int32(clamping: end - SteadyClock.milliseconds() - Int64(isMoving ? Self.pause : 0))
        let isAskedAgain = isMoving || [.timedOut, .transport, .allBrokersDown].contains(error.code)
        guard isAskedAgain, left > 0, !isEnding.load(ordering: .sequentiallyConsistent) else { throw error }
        if isMoving { usleep(UInt32(Self.pause) * 1_000) } else { step = step * 2 }
        step = min(step, Self.longestStep, left)
      }
    }
  }

  /// Takes the client's events: why a broker has refused it since the last answer; nil if none has.
  private func refusal(_ operation: String) -> KafkaError? {
    guard findsRefusals, let queue = rd_kafka_queue_get_main(pointer) else { return nil }
    defer { rd_kafka_queue_destroy(queue) }
    var refusal: KafkaError?
    while let event = rd_kafka_queue_poll(queue, 0) {
      dispatch(event, log: nil) { error in
        // For librdkafka an alert after the handshake, which a missing certificate gets, is a connection that broke.
        let isAlert = error.code == .transport && error.message.contains("SSL alert number")
        guard isAlert || error.code == .authentication || error.code == .tls else { return }
        refusal = KafkaError(isAlert ? .tls : error.code, operation, message: error.message)
      }
      rd_kafka_event_destroy(event)
    }
    return refusal
  }

  /// In milliseconds. A broker that does not answer within the longest step counts as hanging.
  private static let (firstStep, longestStep): (Int32, Int32) = (500, 3_000)
  /// In milliseconds, between two questions that get immediate errors.
  private static let pause: Int32 = 100

  /// Destroys the client on a thread of its own, after its last batches and calls. The handle must not be used any more.
  ///
  /// It drops fetched records first, since librdkafka waits for the owners of its records.
  ///
  /// - Parameters:
  ///   - leavingGroup: whether a consumer leaves its group, which then need not wait for the session timeout.
  ///   - queues: the consumer's queues; they are destroyed.
  ///   - done: told whether the group has let a static member go. Otherwise others get its partitions when its session ends.
  func end(leavingGroup: Bool, discarding queues: [OpaquePointer] = [], _ done: @escaping @Sendable (_ hasLeft: Bool) -> Void = { _ in }) {
    isEnding.store(true, ordering: .sequentiallyConsistent)
    let addresses = queues.map { UInt(bitPattern: $0) }
    NamedThread.start("kafka-close") { [self] in
      if !addresses.isEmpty { rd_kafka_assign(pointer, nil) }
      for queue in addresses.compactMap({ OpaquePointer(bitPattern: $0) }) {
        var message: UnsafeMutablePointer<rd_kafka_message_t>?
        while rd_kafka_consume_batch_queue(queue, 0, &message, 1) > 0 {
          if let message { rd_kafka_message_destroy(message) }
        }
        rd_kafka_queue_destroy(queue)
      }
      if leavingGroup, rebalances?.isStatic == true { Self.leaveGroup([self], by: SteadyClock.milliseconds() + Self.longestLeave) }
      // A fenced one is no member any more.
      let hasLeft = !leavingGroup || rebalances.map { $0.isStatic && $0.isMember } != true || fatalError != nil
      let isClosed = leavingGroup && rd_kafka_consumer_close(pointer) == RD_KAFKA_RESP_ERR_NO_ERROR
      while held.load(ordering: .sequentiallyConsistent) > 0 { sem_wait(released) }
      if let rebalances, rebalances.isUnassignedMember, rd_kafka_version() < 0x0203_0000 {
        // The member has left its group. The client and the object of its callbacks stay until the process ends.
        _ = Unmanaged.passRetained(rebalances)
        return done(hasLeft)
      }
      rd_kafka_destroy_flags(pointer, isClosed || !leavingGroup ? 0 : RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
      done(hasLeft)
    }
  }

  /// How long a static member waits for its group, in milliseconds, before its session has to end by itself. A group that forms without a
  /// member that was killed takes some seconds.
  private static let longestLeave: Int64 = 6_000

  /// Makes static members leave their group, which closing alone does not do. It blocks.
  static func leaveGroup(_ members: [ClientHandle], by end: Int64) {
    // Before the answer to its join, a member has no name to leave by.
    serve(members, by: end) { !$0.isJoining }
    let leaving = members.filter { $0.rebalances?.isMember == true && rd_kafka_unsubscribe($0.pointer) == RD_KAFKA_RESP_ERR_NO_ERROR }
    serve(leaving, by: end) { !$0.isMember }
  }

  /// Serves members until something is true of all. A member that is not served keeps its group from forming, and so the others waiting.
  static func serve(_ members: [ClientHandle], by end: Int64, until isDone: (RebalanceInbox) -> Bool) {
    while !members.allSatisfy({ $0.rebalances.map(isDone) != false }), SteadyClock.milliseconds() < end {
      for member in members {
        if let message = rd_kafka_consumer_poll(member.pointer, max(1, 20 / Int32(members.count))) { rd_kafka_message_destroy(message) }
      }
    }
  }

  /// The error that has made the client useless; nil if there is none.
  var fatalError: KafkaError? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
      text.baseAddress?.pointee = 0
      let code = rd_kafka_fatal_error(pointer, text.baseAddress, text.count)
      guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
      return KafkaError(code, "use the Kafka client", message: text.baseAddress.map { String(cString: $0) } ?? "", isFatal: true)
    }
  }

  /// Handles an event that every kind of client has: logs, statistics, errors.
  func dispatch(
    _ event: OpaquePointer, log: ((KafkaLogLine) -> Void)?, statistics: ((UnsafeRawBufferPointer) -> Void)? = nil,
    failed: (KafkaError) -> Void
  ) {
    switch rd_kafka_event_type(event) {
    case RD_KAFKA_EVENT_LOG:
      guard let log else { return }
      var facility: UnsafePointer<CChar>?
      var text: UnsafePointer<CChar>?
      var severity: Int32 = 0
      guard rd_kafka_event_log(event, &facility, &text, &severity) == 0, let facility, let text else { return }
      let line = KafkaLogLine(severity: Int(severity), facility: String(cString: facility), message: String(cString: text))
      // It warns of brokers that create topics by request. Only the embedded broker does not know how to refuse that.
      if line.facility != "AUTOCREATE" { log(line) }
    case RD_KAFKA_EVENT_STATS:
      guard let statistics, let text = rd_kafka_event_stats(event) else { return }
      var length = 0
      while text[length] != 0 { length += 1 }
      statistics(UnsafeRawBufferPointer(start: text, count: length))
    case RD_KAFKA_EVENT_ERROR:
      if let fatal = rd_kafka_event_error_is_fatal(event) != 0 ? fatalError : nil { return failed(fatal) }
      let text = rd_kafka_event_error_string(event).map { String(cString: $0) } ?? ""
      failed(KafkaError(rd_kafka_event_error(event), "use the Kafka client", message: text))
    default: break
    }
  }
}
