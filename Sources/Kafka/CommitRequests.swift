import CRdKafka
import EventLoop

/// A consumer's commits, which wait while its group rebalances.
final class CommitRequests {
  typealias Completion = ([CommitOffset: KafkaError]) -> Void

  private let loop: EventLoop
  private let client: ClientHandle
  private let queue: OpaquePointer
  /// Whether commits must wait; checked before each is sent.
  private let mustWait: () -> Bool
  /// The partition of a commit; nil if its assignment is over.
  private let name: (CommitOffset) -> TopicPartition?
  /// The note to commit beside the offset.
  private let note: (CommitOffset) -> String?
  private var held: [(offsets: [CommitOffset], completion: Completion)] = []
  private var sent: [UInt: (offsets: [CommitOffset: TopicPartition], completion: Completion)] = [:]
  private var lastNumber: UInt = 0
  private var retry: Timer?
  private let answers: LoopWaiters

  /// Answers arrive as events on `queue`; the owner passes them to `take`.
  init(
    on loop: EventLoop, _ client: ClientHandle, queue: OpaquePointer, mustWait: @escaping () -> Bool,
    name: @escaping (CommitOffset) -> TopicPartition?, note: @escaping (CommitOffset) -> String?
  ) {
    self.loop = loop
    self.client = client
    self.queue = queue
    self.mustWait = mustWait
    self.name = name
    self.note = note
    answers = LoopWaiters(on: loop)
  }

  func add(_ offsets: [CommitOffset], _ completion: @escaping Completion) {
    guard mustWait() else { return send(offsets, completion) }
    held.append((offsets, completion))
    // Usually an event of the group wakes the consumer after the wait. After a failed join there is none.
    if retry == nil { retry = Timer(on: loop) { [self] in sendHeld() } }
    retry?.start(after: 50, repeating: 50)
  }

  func sendHeld() {
    guard !held.isEmpty, !mustWait() else { return }
    retry?.stop()
    let waiting = held
    held = []
    for (offsets, completion) in waiting { send(offsets, completion) }
  }

  private func send(_ offsets: [CommitOffset], _ completion: @escaping Completion) {
    var refused: [CommitOffset: KafkaError] = [:]
    var names: [CommitOffset: TopicPartition] = [:]
    let list = PartitionList(capacity: offsets.count)
    for offset in offsets {
      if let name = name(offset) {
        list.add(name, offset: offset.offset, note: note(offset))
        names[offset] = name
      } else {
        refused[offset] = KafkaError(.notOwned, "commit", message: "the assignment is over")
      }
    }
    guard !names.isEmpty else { return completion(refused) }
    lastNumber += 1
    let code = rd_kafka_commit_queue(client.pointer, list.pointer, queue, nil, UnsafeMutableRawPointer(bitPattern: lastNumber))
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
      for offset in names.keys { refused[offset] = KafkaError(code, "commit offsets") }
      return completion(refused)
    }
    let unsent = refused
    sent[lastNumber] = (names, { completion($0.merging(unsent) { error, _ in error }) })
  }

  /// Takes the answer to a commit.
  func take(_ event: OpaquePointer) {
    guard let (offsets, completion) = sent.removeValue(forKey: UInt(bitPattern: rd_kafka_event_opaque(event))) else { return }
    let overall = rd_kafka_event_error(event)
    var codes: [TopicPartition: rd_kafka_resp_err_t] = [:]
    if let list = rd_kafka_event_topic_partition_list(event), let elements = list.pointee.elems {
      for place in 0..<Int(list.pointee.cnt) { codes[elements[place].topicPartition] = elements[place].err }
    }
    var failed: [CommitOffset: KafkaError] = [:]
    for (offset, name) in offsets {
      let own = codes[name] ?? RD_KAFKA_RESP_ERR_NO_ERROR
      let code = own == RD_KAFKA_RESP_ERR_NO_ERROR ? overall : own
      if code != RD_KAFKA_RESP_ERR_NO_ERROR { failed[offset] = KafkaError(code, "commit \(name)") }
    }
    completion(failed)
    answers.look()
  }

  /// Waits until all sent commits are answered, or until the time is over.
  func settled(withinMilliseconds milliseconds: Int) async {
    await answers.wait(withinMilliseconds: milliseconds) { sent.isEmpty }
  }

  /// Fails the commits without an answer.
  func close() {
    retry?.close()
    retry = nil
    let unanswered = sent.values.map { (Array($0.offsets.keys), $0.completion) } + held.map { ($0.offsets, $0.completion) }
    sent = [:]
    held = []
    for (offsets, completion) in unanswered {
      completion(Dictionary(offsets.map { ($0, KafkaError(.closed, "commit")) }) { first, _ in first })
    }
  }
}
