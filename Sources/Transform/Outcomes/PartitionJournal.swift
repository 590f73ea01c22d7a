import Kafka
import Notifications

/// The journal of one partition of `requests`: the record that is being written, those that Kafka does not have yet, and the tickets that
/// wait for them. It knows no clock and no Kafka.
///
/// A ticket comes back when Kafka has every journal record up to the last one that names its request; so one whose pages lie in several
/// records waits for all of them, whatever order they are reported in.
final class PartitionJournal {
  /// A record that Kafka is to have: as it was written first, however often it is sent.
  private struct Sealed {
    let number: UInt32
    let incarnation: UInt32
    var value: [UInt8]
    var tickets: [RecordTicket]
    var state: State

    enum State { case unsent, sent, durable }
  }

  /// The partition's number.
  let partition: Int32
  private var incarnation: UInt32
  private var writer: JournalWriter
  /// Tickets that wait for the record that is being written.
  private var tickets: [RecordTicket] = []
  /// Oldest first.
  private var sealed: [Sealed] = []
  private var sealedBytes = 0

  init(partition: Int32, incarnation: UInt32) {
    self.partition = partition
    self.incarnation = incarnation
    writer = JournalWriter(partition: partition, incarnation: incarnation)
  }

  /// Bytes of the record that is being written.
  var openBytes: Int { writer.count }
  /// Bytes that Kafka does not have yet, with those that wait for earlier ones.
  var bytes: Int { writer.count + sealedBytes }

  /// Notes the verdict on a request that is for one device, or for none, since no device was asked for.
  func append(_ place: JournalPlace, _ judgement: JournalJudgement, now: Int64) {
    writer.append(offset: place.offset, timestamp: place.timestamp, judgement, now: now)
  }

  /// Notes the verdicts on a request at the devices of a page: see `JournalWriter`.
  func append(
    _ place: JournalPlace, count: Int, closing: JournalEntry.Closing?, now: Int64,
    _ device: (_ number: Int, _ then: (UnsafeRawBufferPointer, JournalJudgement) -> Void) -> Void
  ) {
    writer.append(offset: place.offset, timestamp: place.timestamp, count: count, closing: closing, now: now, device)
  }

  /// Notes which service extensions a request has passed: see `JournalWriter`.
  func append(_ place: JournalPlace, extensions: UnsafeRawBufferPointer, count: Int, now: Int64) {
    writer.append(offset: place.offset, timestamp: place.timestamp, extensions: extensions, count: count, now: now)
  }

  /// Notes that the records of so many offsets could not be read.
  func append(_ place: JournalPlace, unreadable count: Int, now: Int64) {
    writer.append(offset: place.offset, timestamp: place.timestamp, unreadable: count, now: now)
  }

  /// The requests that come are those of a topic that was made again so often: its entries have records of their own.
  ///
  /// - Returns: whether a record was sealed.
  func enter(incarnation: UInt32, _ number: @autoclosure () -> UInt32) -> Bool {
    guard incarnation != self.incarnation else { return false }
    let isSealed = seal(number())
    self.incarnation = incarnation
    writer = JournalWriter(partition: partition, incarnation: incarnation)
    return isSealed
  }

  /// A request is judged, and its other outcomes are durable; true when its ticket may go back now, since Kafka has all that was written.
  func wait(_ ticket: RecordTicket) -> Bool {
    if writer.count > 0 {
      tickets.append(ticket)
    } else if sealed.isEmpty {
      return true
    } else {
      sealed[sealed.count - 1].tickets.append(ticket)
    }
    return false
  }

  /// Ends the record that is being written, which is to be sent under this number; false when there is nothing in it.
  func seal(_ number: UInt32) -> Bool {
    guard writer.count > 0 else { return false }
    sealed.append(
      Sealed(number: number, incarnation: incarnation, value: writer.withValue { Array($0) }, tickets: tickets, state: .unsent))
    sealedBytes += writer.count
    tickets = []
    writer.reset()
    return true
  }

  /// Hands out the records that are to be sent, oldest first, as long as they are taken.
  func send(_ take: (_ number: UInt32, _ incarnation: UInt32, _ value: [UInt8]) -> Bool) {
    for index in sealed.indices where sealed[index].state == .unsent {
      guard take(sealed[index].number, sealed[index].incarnation, sealed[index].value) else { return }
      sealed[index].state = .sent
    }
  }

  /// Splits a record that is too large for Kafka by itself: its first half becomes a record of its own, in front of it.
  ///
  /// - Parameter first: the number of that record.
  /// - Returns: how many bytes the record had; nil where there is nothing to split.
  func split(_ number: UInt32, _ first: UInt32) -> Int? {
    guard let index = sealed.firstIndex(where: { $0.number == number }) else { return nil }
    let (record, incarnation) = (sealed[index], sealed[index].incarnation)
    guard
      let halves = record.value.withUnsafeBytes({ JournalRecord.split($0, partition: partition, incarnation: incarnation) })
    else { return nil }
    sealedBytes += halves.first.count + halves.second.count - record.value.count
    (sealed[index].value, sealed[index].state) = (halves.second, .unsent)
    // The tickets stay with the second half, which comes back when Kafka has both.
    sealed.insert(Sealed(number: first, incarnation: incarnation, value: halves.first, tickets: [], state: .unsent), at: index)
    return record.value.count
  }

  /// Kafka has a record, or does not, and it is to be sent again: the tickets that go back.
  func reported(_ number: UInt32, isDurable: Bool) -> [RecordTicket] {
    guard let index = sealed.firstIndex(where: { $0.number == number }) else { return [] }
    sealed[index].state = isDurable ? .durable : .unsent
    let durable = sealed.prefix { $0.state == .durable }
    sealedBytes -= durable.reduce(0) { $0 + $1.value.count }
    defer { sealed.removeFirst(durable.count) }
    return durable.flatMap(\.tickets)
  }
}

/// Where a record of `requests` lies, as the journal tells it.
struct JournalPlace {
  let offset: Int64
  let timestamp: Int64

  init(_ record: RecordView) { (offset, timestamp) = (record.offset, record.timestamp) }
  init(offset: Int64, timestamp: Int64) { (self.offset, self.timestamp) = (offset, timestamp) }
}
