import EventLoop
import Kafka
import Notifications
import Worker

/// Whom the journal tells.
protocol JournalOwner: AnyObject {
  /// Requests are finished: their tickets go back to the tracker.
  func journaled(_ tickets: [RecordTicket])
  /// Kafka has not taken a record (why), or takes them again (nil).
  func journalFailed(_ error: KafkaError.Code?)
}

/// Writes `notifications.journal`: how requests were judged, many to a record, in the partition of the same number. Loop-confined.
///
/// A request is finished when Kafka has every record that names it. A record that Kafka has not taken is sent again as it is: nothing is
/// judged again for it, and nobody's request is dead-lettered for it.
final class Journal {
  weak var owner: (any JournalOwner)?
  private let producer: Producer
  private let topic: ProducerTopic
  private let worker: Name
  private let headers = RecordHeaders()
  private let metrics: TransformMetrics
  private var partitions: [Int32: PartitionJournal] = [:]
  /// The one that was asked for last: requests of one partition come one behind the other.
  private var last: PartitionJournal?
  /// The partitions of records that were sent, or are to be sent, by their numbers.
  private var numbered: [UInt32: PartitionJournal] = [:]
  private var lastNumber: UInt32 = 0
  /// The records that Kafka has not taken, by their numbers.
  private var failed: [UInt32: KafkaError.Code] = [:]
  private let loop: EventLoop
  private let timer: Timer
  private var isTimed = false
  private var hurriedUntil: UInt64 = 0

  /// An open record is sent when it is this large: well below what the topic takes.
  private var fullBytes: Int
  /// The bounds of that: the first is for topics that take large batches. Below the second records are too many.
  private static let (largestFullBytes, smallestFullBytes) = (64 << 10, 1 << 10)
  /// What the last entry of a record may have: the verdicts on a page of a person's devices.
  private static let entryBytes = 24 << 10
  /// Verdicts on a million devices, or so.
  private static let busyBytes = 32 << 20
  /// How long an open record waits for further requests, in milliseconds; and where somebody waits for the requests to be finished.
  private static let (lingerMilliseconds, hurriedMilliseconds) = (100, 5)

  /// - Parameter limit: what the brokers take as one batch of the topic, in bytes.
  init(
    on loop: EventLoop, _ settings: TransformSettings, producer: Producer, limit: Int, metrics: TransformMetrics
  ) throws(KafkaError) {
    self.loop = loop
    fullBytes = min(Self.largestFullBytes, max(Self.smallestFullBytes, limit - Self.entryBytes))
    self.producer = producer
    self.metrics = metrics
    topic = try producer.topic(settings.topics.journal)
    worker = settings.worker
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in
      isTimed = false
      flush()
    }
  }

  /// Notes the verdict on a request that is for one device, or for none, since no device was asked for.
  func append(_ source: JournalSource, _ judgement: JournalJudgement) {
    let journal = journal(source)
    journal.append(source.place, judgement, now: loop.wallMilliseconds())
    written(journal)
  }

  /// Notes the verdicts on a request at the devices of a page; `closing` with the last page.
  func append(
    _ source: JournalSource, count: Int, closing: JournalEntry.Closing?,
    _ device: (_ number: Int, _ then: (UnsafeRawBufferPointer, JournalJudgement) -> Void) -> Void
  ) {
    let journal = journal(source)
    journal.append(source.place, count: count, closing: closing, now: loop.wallMilliseconds(), device)
    written(journal)
  }

  /// Notes which service extensions a request has passed: the bytes of so many.
  func append(_ source: JournalSource, extensions: UnsafeRawBufferPointer, count: Int) {
    let journal = journal(source)
    journal.append(source.place, extensions: extensions, count: count, now: loop.wallMilliseconds())
    written(journal)
  }

  /// Notes that so many offsets have no readable record.
  func append(_ source: JournalSource, unreadable count: Int) {
    let journal = journal(source)
    journal.append(source.place, unreadable: count, now: loop.wallMilliseconds())
    written(journal)
  }

  /// All other outcomes of a request are durable: its ticket goes back when Kafka has what the journal says of it.
  func finish(_ ticket: RecordTicket, _ source: JournalSource) {
    if journal(source).wait(ticket) { owner?.journaled([ticket]) }
  }

  /// Sends what is there.
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
    if !finished.isEmpty { owner?.journaled(finished) }
  }

  /// The topic takes less than it did, or than could be found out: a record that was refused is sent as two, and the next ones are smaller.
  private func split(_ number: UInt32, of journal: PartitionJournal) -> Bool {
    guard let bytes = journal.split(number, lastNumber &+ 1) else { return false }
    self.number(journal)
    fullBytes = min(fullBytes, max(Self.smallestFullBytes, bytes / 2))
    note(number, nil)
    send(journal)
    return true
  }

  /// Notes whether Kafka has taken a record; the owner is told of the first one that it has not taken, and when there is none any more.
  private func note(_ number: UInt32, _ failure: KafkaError.Code?) {
    let wasFailing = !failed.isEmpty
    failed[number] = failure
    if wasFailing != !failed.isEmpty { owner?.journalFailed(failure) }
  }

  /// What it retains until Kafka has it.
  var bytes: Int { partitions.values.reduce(0) { $0 + $1.bytes } }

  /// Whether that is so much that nothing should be begun that makes much more.
  var isBusy: Bool { bytes > Self.busyBytes }

  /// Whether Kafka has all of it.
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

  private func written(_ journal: PartitionJournal) {
    guard journal.openBytes < fullBytes else {
      seal(journal)
      return send(journal)
    }
    lingers()
  }

  private func lingers() {
    guard !isTimed else { return }
    isTimed = true
    timer.start(after: loop.milliseconds() < hurriedUntil ? Self.hurriedMilliseconds : Self.lingerMilliseconds)
  }

  /// Sends what is there, and for so long all that comes without much waiting: a partition is being given up.
  func hurry(forMilliseconds milliseconds: Int) {
    hurriedUntil = loop.milliseconds() + UInt64(milliseconds)
    flush()
  }

  private func seal(_ journal: PartitionJournal) { if journal.seal(lastNumber &+ 1) { number(journal) } }

  private func number(_ journal: PartitionJournal) {
    lastNumber &+= 1
    numbered[lastNumber] = journal
  }

  private func send() { for journal in partitions.values { send(journal) } }

  private func send(_ journal: PartitionJournal) {
    // The client has a limit of its own, and reports nothing of a record that it does not take.
    var tooLarge: UInt32?
    defer { if let tooLarge { _ = split(tooLarge, of: journal) } }
    journal.send { number, incarnation, value in
      headers.append(JournalLayout.Header.layout, text: JournalLayout.version)
      headers.append(JournalLayout.Header.worker, text: worker.text)
      headers.append(JournalLayout.Header.incarnation, text: String(incarnation))
      let outcome = value.withUnsafeBytes {
        producer.produce(
          topic, partition: journal.partition, key: nil, value: $0, headers: headers, opaque: OutcomePurpose.journal(number).opaque)
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
      metrics.journalRecords.increment()
      metrics.journalBytes.increment(by: value.count)
      return true
    }
  }
}

/// The record of `requests` that the journal tells of.
struct JournalSource {
  let partition: Int32
  let incarnation: UInt32
  let place: JournalPlace

  init(partition: Int32, incarnation: UInt32, place: JournalPlace) {
    (self.partition, self.incarnation, self.place) = (partition, incarnation, place)
  }

  init(_ record: RecordView, incarnation: UInt32) {
    partition = record.partition
    self.incarnation = incarnation
    place = JournalPlace(record)
  }

  /// The revision that the record itself gives its request.
  var impliedRevision: Revision {
    Revision(SourcePosition(partition: partition, offset: place.offset, timestamp: place.timestamp)).inIncarnation(incarnation)
  }
}
