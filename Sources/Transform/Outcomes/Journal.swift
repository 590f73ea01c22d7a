import EventLoop
import Kafka
import Notifications
import Worker

/// Writes the verdicts on requests to `notifications.journal`, many to a record.
///
/// A record has the verdicts on requests of the partition of the same number. A request is finished when Kafka has every record that names
/// it. A record that Kafka has not taken is sent again as it is: no request is judged again or dead-lettered for it.
final class Journal {
  weak var owner: TransformCore?
  private let lane: LaneContext
  private let producer: Producer
  private let topic: ProducerTopic
  private let headers = RecordHeaders()
  private var partitions: [Int32: PartitionJournal] = [:]
  /// The partition that was asked for last: requests of one partition come one after the other.
  private var last: PartitionJournal?
  /// The partitions of sealed records, by the records' numbers.
  private var numbered: [UInt32: PartitionJournal] = [:]
  private var lastNumber: UInt32 = 0
  /// The records that Kafka has not taken, by their numbers.
  private var failed: [UInt32: KafkaError.Code] = [:]
  private let timer: Timer
  private var isTimed = false
  private var hurriedUntil: UInt64 = 0

  /// An open record is sent when it has so many bytes: well below the topic's limit.
  private var fullBytes: Int
  /// The bounds of that. The first is for topics that take large batches; smaller records than the second would be too many.
  private static let (largestFullBytes, smallestFullBytes) = (64 << 10, 1 << 10)
  /// The greatest size of a record's last entry: the verdicts on a page of a person's devices.
  private static let entryBytes = 24 << 10
  /// About the verdicts on a million devices.
  private static let busyBytes = 32 << 20
  /// How long an open record waits for further requests, in milliseconds; and how long while a partition is given up.
  private static let (lingerMilliseconds, hurriedMilliseconds) = (100, 5)

  /// - Parameter limit: the greatest batch of the topic that the brokers take, in bytes.
  init(_ lane: LaneContext, _ producer: Producer, limit: Int) throws(KafkaError) {
    fullBytes = min(Self.largestFullBytes, max(Self.smallestFullBytes, limit - Self.entryBytes))
    (self.lane, self.producer) = (lane, producer)
    topic = try producer.topic(lane.settings.topics.journal)
    timer = Timer(on: lane.loop)
    timer.handler = { [unowned self] in
      isTimed = false
      flush()
    }
  }

  /// Writes what becomes of a record into the open one of its partition.
  ///
  /// - Parameter write: writes the entry, with the time in milliseconds since 1970.
  func append(_ source: JournalSource, _ write: (_ writer: inout JournalWriter, _ now: Int64) -> Void) {
    let journal = journal(source)
    write(&journal.writer, lane.loop.wallMilliseconds())
    guard journal.openBytes < fullBytes else {
      seal(journal)
      return send(journal)
    }
    lingers()
  }

  /// All other outcomes of a request are durable: its ticket goes back when Kafka has the journal's records that name it.
  func finish(_ ticket: RecordTicket, _ source: JournalSource) {
    if journal(source).wait(ticket) { lane.notes.finished(ticket) }
  }

  /// Sends the open records.
  func flush() {
    for journal in partitions.values { seal(journal) }
    send()
  }

  /// A record of the journal is in Kafka, or is not.
  func reported(_ number: UInt32, failure: KafkaError.Code?) {
    guard let journal = numbered[number] else { return }
    if failure == .messageTooLarge, split(number, of: journal) { return }
    let finished = journal.reported(number, isDurable: failure == nil)
    if failure == nil { numbered[number] = nil } else { lingers() }
    note(number, failure)
    for ticket in finished { lane.notes.finished(ticket) }
  }

  /// Splits a refused record in two, and makes the next ones smaller: the topic's limit has changed, or could not be read.
  private func split(_ number: UInt32, of journal: PartitionJournal) -> Bool {
    guard let bytes = journal.split(number, lastNumber &+ 1) else { return false }
    self.number(journal)
    fullBytes = min(fullBytes, max(Self.smallestFullBytes, bytes / 2))
    note(number, nil)
    send(journal)
    return true
  }

  /// Notes whether Kafka has taken a record. The owner hears of the first failure, and when Kafka has taken all records again.
  private func note(_ number: UInt32, _ failure: KafkaError.Code?) {
    let wasFailing = !failed.isEmpty
    failed[number] = failure
    if wasFailing != !failed.isEmpty { owner?.journalFailed(failure) }
  }

  /// How many bytes the journal retains until Kafka has them.
  var bytes: Int { partitions.values.reduce(0) { $0 + $1.bytes } }

  /// Whether these are so many that no page of devices should be asked for.
  var isBusy: Bool { bytes > Self.busyBytes }

  /// Whether Kafka has all records.
  var isDurable: Bool { numbered.isEmpty && partitions.values.allSatisfy { $0.openBytes == 0 } }

  func close() {
    timer.close()
    owner = nil
  }

  private func journal(_ source: JournalSource) -> PartitionJournal {
    if let journal = last?.partition == source.partition ? last : partitions[source.partition] {
      if journal.enter(incarnation: source.incarnation, lastNumber &+ 1) { number(journal) }
      last = journal
      return journal
    }
    let journal = PartitionJournal(partition: source.partition, incarnation: source.incarnation)
    partitions[source.partition] = journal
    last = journal
    return journal
  }

  private func lingers() {
    guard !isTimed else { return }
    isTimed = true
    timer.start(after: lane.loop.milliseconds() < hurriedUntil ? Self.hurriedMilliseconds : Self.lingerMilliseconds)
  }

  /// Sends the open records, and for some time the next ones without much delay: a partition is given up.
  func hurry(forMilliseconds milliseconds: Int) {
    hurriedUntil = lane.loop.milliseconds() + UInt64(milliseconds)
    flush()
  }

  private func seal(_ journal: PartitionJournal) { if journal.seal(lastNumber &+ 1) { number(journal) } }

  private func number(_ journal: PartitionJournal) {
    lastNumber &+= 1
    numbered[lastNumber] = journal
  }

  private func send() { for journal in partitions.values { send(journal) } }

  private func send(_ journal: PartitionJournal) {
    // The client has its own limit, and sends no report for a record that it refuses.
    var tooLarge: UInt32?
    defer { if let tooLarge { _ = split(tooLarge, of: journal) } }
    journal.send { number, incarnation, value in
      headers.append(JournalLayout.Header.layout, text: JournalLayout.version)
      headers.append(JournalLayout.Header.worker, text: lane.settings.worker.text)
      headers.append(JournalLayout.Header.incarnation, text: String(incarnation))
      let outcome = value.withUnsafeBytes {
        producer.produce(
          topic, partition: journal.partition, key: nil, value: $0, headers: headers, opaque: OutcomePurpose(.journal, number).opaque)
      }
      guard case .taken = outcome else {
        if case .refused(let error) = outcome {
          note(number, error.code)
          if error.code == .messageTooLarge { tooLarge = number }
        }
        headers.removeAll()
        lingers()
        return false
      }
      lane.metrics.journalRecords.increment()
      lane.metrics.journalBytes.increment(by: value.count)
      return true
    }
  }
}

/// The record of `requests` that an entry of the journal names.
struct JournalSource {
  let partition: Int32
  let incarnation: UInt32
  let offset: Int64
  let timestamp: Int64

  /// The revision that the record's position gives its request.
  var impliedRevision: Revision {
    Revision(SourcePosition(partition: partition, offset: offset, timestamp: timestamp)).inIncarnation(incarnation)
  }
}

extension JournalSource {
  init(_ record: RecordView, incarnation: UInt32) {
    self.init(partition: record.partition, incarnation: incarnation, offset: record.offset, timestamp: record.timestamp)
  }
}
