import CRdKafka
import EventLoop
import Synchronization

/// Consecutive offsets that librdkafka cannot read, because of a batch's compression or checksum.
public struct UnreadableStretch: Sendable, Hashable {
  /// The partition, in the assignment that read it.
  public let partition: AssignedPartition
  /// From the first offset to read to the end of the batch.
  public let offsets: Range<Int64>
  /// librdkafka's error.
  public let error: KafkaError

  /// A stretch of its parts.
  public init(partition: AssignedPartition, offsets: Range<Int64>, error: KafkaError) {
    (self.partition, self.offsets, self.error) = (partition, offsets, error)
  }

  /// The part from an offset on; nil if nothing is left.
  public func from(_ offset: Int64) -> UnreadableStretch? {
    let first = max(offsets.lowerBound, offset)
    return first < offsets.upperBound ? UnreadableStretch(partition: partition, offsets: first..<offsets.upperBound, error: error) : nil
  }
}

extension KafkaError {
  /// Whether the bytes of the records are wrong, so that no retry can read them.
  ///
  /// Other errors name an offset too. Those of authorization or of the broker's disk end when their cause does.
  var isOfBytes: Bool { code == .badCompression || code == .badMessage }
}

/// Finds the offsets of a batch that librdkafka cannot read. It uses a thread and a client of its own.
///
/// librdkafka reports the batch's first offset, and stays there. It could continue at the first offset after the batch, but nothing reports
/// that. A read at any offset inside a batch returns the whole batch.
final class UnreadableSearch: Sendable {
  /// The result of a search.
  enum Finding: Sendable {
    /// These offsets cannot be read.
    case unreadable(Range<Int64>, KafkaError)
    /// The partition can be read from the offset.
    case readable
    /// The search failed.
    case failed(KafkaError)
  }

  private enum Look {
    case readable
    case unreadable(batch: Int64, KafkaError)
  }

  private let result = Mutex<Finding?>(nil)
  private let isStopped = Atomic<Bool>(false)
  private let partition: TopicPartition
  private let configuration: KafkaConfiguration

  /// The longest time of one look, in milliseconds.
  private static let lookMilliseconds: Int64 = 10_000

  /// Starts the search.
  ///
  /// - Parameter offset: the first offset to read.
  init(_ partition: TopicPartition, from offset: Int64, _ configuration: KafkaConfiguration) {
    self.partition = partition
    self.configuration = configuration.merging([
      "check.crcs": "true", "enable.partition.eof": "true", "enable.auto.commit": "false", "auto.offset.reset": "error",
      "fetch.error.backoff.ms": "0", "fetch.wait.max.ms": "10", "fetch.message.max.bytes": "1024", "queued.min.messages": "1",
    ])
    NamedThread.start("kafka-search") { [self] in
      let finding: Finding
      do throws(KafkaError) { finding = try search(from: offset) } catch { finding = .failed(error) }
      result.withLock { $0 = finding }
    }
  }

  /// The result; nil during the search.
  var finding: Finding? { result.withLock { $0 } }

  /// Stops the search.
  func stop() { isStopped.store(true, ordering: .relaxed) }

  private func search(from offset: Int64) throws(KafkaError) -> Finding {
    let object = try configuration.object(defaults: ["group.id": "\(configuration.clientID).ungrouped"], forConsumer: true)
    try object.leaveOutLog()
    let client = try ClientHandle(RD_KAFKA_CONSUMER, object)
    defer { client.end(leavingGroup: false) }
    rd_kafka_poll_set_consumer(client.pointer)
    guard case .unreadable(let batch, let error) = try look(at: offset, client.pointer) else { return .readable }
    guard let end = try watermarks(of: [partition], client.pointer, Int32(Self.lookMilliseconds))[partition]?.upperBound else {
      return .failed(KafkaError(.timedOut, operation))
    }
    // No record was given before the batch, so it begins there.
    let first = batch < end ? max(offset, batch) : offset
    var search = BatchEnd(inside: first, end: end)
    while let offset = search.next {
      switch try look(at: offset, client.pointer) {
      case .unreadable(batch, _): search.isInside(offset)
      case .unreadable(let other, _): search.isOutside(other > first && other <= offset ? other : offset)
      case .readable: search.isOutside(offset)
      }
    }
    return .unreadable(first..<search.found, error)
  }

  private var operation: String { "find what can be read of \(partition)" }

  /// Reads from an offset until there is an answer.
  private func look(at offset: Int64, _ client: OpaquePointer) throws(KafkaError) -> Look {
    let list = PartitionList(capacity: 1)
    list.add(partition, offset: offset)
    try check(rd_kafka_assign(client, list.pointer), operation)
    defer { rd_kafka_assign(client, nil) }
    var last = KafkaError(.timedOut, operation)
    let deadline = SteadyClock.milliseconds() + Self.lookMilliseconds
    while SteadyClock.milliseconds() < deadline {
      if isStopped.load(ordering: .relaxed) { throw KafkaError(.closed, operation) }
      guard let message = rd_kafka_consumer_poll(client, 100) else { continue }
      defer { rd_kafka_message_destroy(message) }
      let code = message.pointee.err
      if code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR__PARTITION_EOF { return .readable }
      let text = rd_kafka_message_errstr(message).map { String(cString: $0) } ?? ""
      let error = KafkaError(code, "consume \(partition)", message: text)
      if error.isOfBytes { return .unreadable(batch: message.pointee.offset, error) }
      last = error
    }
    throw last
  }
}
