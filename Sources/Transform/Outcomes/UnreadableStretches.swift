import EventLoop
import Kafka
import Notifications
import Worker

/// Reports the offsets of batches that cannot be read: in a dead letter, in the journal and in the log.
///
/// A stretch counts as one record in flight until its letter and its entry of the journal are durable. Its bytes are not kept.
final class UnreadableStretches {
  /// A stretch whose letter is not in Kafka yet.
  private struct Open {
    let stretch: UnreadableStretch
    let ticket: RecordTicket
    let incarnation: UInt32
    var isSent = false
  }

  private let lane: LaneContext
  private let producer: Producer
  private let deadLetters: ProducerTopic
  private let journal: Journal
  private let headers = RecordHeaders()
  private let timer: Timer
  private var open: [UInt32: Open] = [:]
  private var lastNumber: UInt32 = 0
  private var isFailing = false
  weak var owner: TransformCore?

  /// The milliseconds after which a refused letter is sent again.
  private static let retryMilliseconds = 1_000

  init(_ lane: LaneContext, _ producer: Producer, _ journal: Journal) throws(KafkaError) {
    (self.lane, self.producer, self.journal) = (lane, producer, journal)
    deadLetters = try producer.topic(lane.settings.topics.deadLetters)
    timer = Timer(on: lane.loop)
    timer.handler = { [unowned self] in send() }
  }

  /// Whether Kafka has all letters.
  var isEmpty: Bool { open.isEmpty }

  /// Takes a stretch that is begun.
  func take(_ stretch: UnreadableStretch, _ ticket: RecordTicket, incarnation: UInt32) {
    let partition = stretch.partition.topicPartition
    lane.logger.error(
      "records cannot be read and are skipped: a dead letter says where they lie",
      [
        "partition": "\(partition)", "first": stretch.offsets.lowerBound, "last": stretch.offsets.upperBound - 1,
        "error": "\(stretch.error.message) (\(stretch.error.name))",
      ])
    lane.metrics.unreadableOffsets.increment(by: stretch.offsets.count)
    lastNumber &+= 1
    open[lastNumber] = Open(stretch: stretch, ticket: ticket, incarnation: incarnation)
    send()
  }

  private func send() {
    for (number, each) in open where !each.isSent {
      let letter = DeadLetter(
        unreadable: "\(each.stretch.error.message) (\(each.stretch.error.name))", each.stretch.offsets,
        of: each.stretch.partition.topicPartition.topic, partition: each.stretch.partition.topicPartition.partition)
      for (name, value) in letter.headers { headers.append(name, value) }
      let outcome = producer.produce(
        deadLetters, key: nil, value: nil, headers: headers, opaque: OutcomePurpose(.unreadable, number).opaque)
      if case .taken = outcome {
        open[number]?.isSent = true
        lane.metrics.deadLettered(letter.reason)
      } else {
        headers.removeAll()
        if case .refused(let error) = outcome { failed(error.code) }
        timer.start(noLaterThan: Self.retryMilliseconds)
      }
    }
  }

  /// A letter is in Kafka, or is not.
  func reported(_ number: UInt32, failure: KafkaError.Code?) {
    guard let each = open[number] else { return }
    if let failure {
      open[number]?.isSent = false
      failed(failure)
      return timer.start(noLaterThan: Self.retryMilliseconds)
    }
    open[number] = nil
    if isFailing, open.isEmpty {
      isFailing = false
      owner?.unreadableLettersFailed(nil)
    }
    let partition = each.stretch.partition.topicPartition
    guard partition.topic == lane.settings.topics.requests else { return lane.notes.finished(each.ticket) }
    let source = JournalSource(
      partition: partition.partition, incarnation: each.incarnation, offset: each.stretch.offsets.lowerBound,
      timestamp: lane.loop.wallMilliseconds())
    journal.append(source) {
      $0.append(offset: source.offset, timestamp: source.timestamp, unreadable: each.stretch.offsets.count, now: $1)
    }
    journal.finish(each.ticket, source)
  }

  /// Tells the owner of a failure: no offset after the stretch is committed until Kafka has its letter.
  private func failed(_ code: KafkaError.Code) {
    guard !isFailing else { return }
    isFailing = true
    owner?.unreadableLettersFailed(KafkaError(code, "write to \(lane.settings.topics.deadLetters)"))
  }

  func close() {
    timer.close()
    open = [:]
    owner = nil
  }
}
