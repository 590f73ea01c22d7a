import Kafka
import Notifications

/// The journal of one partition of `requests`, without a clock and without Kafka.
///
/// It has the open record, the records that Kafka does not have yet, and the tickets that wait for them. A ticket goes back when Kafka has
/// every journal record up to the last one that names its request. So a request with pages in several records waits for all of them, in
/// whatever order they are reported.
final class PartitionJournal {
  /// A record to send to Kafka. It never changes, however often it is sent.
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
  /// Writes the open record.
  var writer: JournalWriter
  /// Tickets that wait for the open record.
  private var tickets: [RecordTicket] = []
  /// Oldest first.
  private var sealed: [Sealed] = []
  private var sealedBytes = 0

  init(partition: Int32, incarnation: UInt32) {
    self.partition = partition
    self.incarnation = incarnation
    writer = JournalWriter(partition: partition, incarnation: incarnation)
  }

  /// Bytes of the open record.
  var openBytes: Int { writer.count }
  /// Bytes of the open record and of all sealed ones.
  var bytes: Int { writer.count + sealedBytes }

  /// Further requests belong to this incarnation of the topic. Their entries get records of their own.
  ///
  /// - Returns: whether a record was sealed.
  func enter(incarnation: UInt32, _ number: @autoclosure () -> UInt32) -> Bool {
    guard incarnation != self.incarnation else { return false }
    let isSealed = seal(number())
    self.incarnation = incarnation
    writer = JournalWriter(partition: partition, incarnation: incarnation)
    return isSealed
  }

  /// A request is judged, and its other outcomes are durable. Returns true if its ticket may go back now, since Kafka has all records.
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

  /// Seals the open record, to be sent under this number; false if it is empty.
  func seal(_ number: UInt32) -> Bool {
    guard writer.count > 0 else { return false }
    sealed.append(
      Sealed(number: number, incarnation: incarnation, value: writer.withValue { Array($0) }, tickets: tickets, state: .unsent))
    sealedBytes += writer.count
    tickets = []
    writer.reset()
    return true
  }

  /// Hands out unsent records, oldest first, until one is not taken.
  func send(_ take: (_ number: UInt32, _ incarnation: UInt32, _ value: [UInt8]) -> Bool) {
    for index in sealed.indices where sealed[index].state == .unsent {
      guard take(sealed[index].number, sealed[index].incarnation, sealed[index].value) else { return }
      sealed[index].state = .sent
    }
  }

  /// Splits a record that is too large for Kafka. Its first half becomes a record of its own, before it.
  ///
  /// - Parameter first: the number of the first half.
  /// - Returns: how many bytes the record had; nil if it cannot be split.
  func split(_ number: UInt32, _ first: UInt32) -> Int? {
    guard let index = sealed.firstIndex(where: { $0.number == number }) else { return nil }
    let (record, incarnation) = (sealed[index], sealed[index].incarnation)
    guard
      let halves = record.value.withUnsafeBytes({ JournalRecord.split($0, partition: partition, incarnation: incarnation) })
    else { return nil }
    sealedBytes += halves.first.count + halves.second.count - record.value.count
    (sealed[index].value, sealed[index].state) = (halves.second, .unsent)
    // The tickets stay with the second half, so they go back when Kafka has both.
    sealed.insert(Sealed(number: first, incarnation: incarnation, value: halves.first, tickets: [], state: .unsent), at: index)
    return record.value.count
  }

  /// Kafka has a record, or has not taken it; then it is sent again. Returns the tickets that go back.
  func reported(_ number: UInt32, isDurable: Bool) -> [RecordTicket] {
    guard let index = sealed.firstIndex(where: { $0.number == number }) else { return [] }
    sealed[index].state = isDurable ? .durable : .unsent
    let durable = sealed.prefix { $0.state == .durable }
    sealedBytes -= durable.reduce(0) { $0 + $1.value.count }
    defer { sealed.removeFirst(durable.count) }
    return durable.flatMap(\.tickets)
  }
}
