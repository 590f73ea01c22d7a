import Kafka
import Notifications
import Worker

/// A partition of requests and its journal, read side by side. Loop-confined.
///
/// A fetch brings a few hundred requests, or a journal of fifty thousand entries. So journal records wait undecoded until the requests come
/// near, at about two bytes for each request.
final class AuditedPartition {
  private let partition: Int32
  /// The offsets that may be audited.
  private let offsets: Range<Int64>
  private var join: JournalJoin
  private var unread = Queue<(journal: JournalRecord, value: [UInt8], offset: Int64)>()
  private var bytes = 0
  private var hasJournal = true
  private var isWaiting = false
  private let out: (JournalJoin.Outcome) -> Void
  /// The greatest incarnation that the journal names.
  private(set) var incarnation: UInt16 = 0
  /// Offsets that workers could not read, by the journal.
  private(set) var stretches: [(offsets: Range<Int64>, incarnation: UInt16)] = []
  /// The layout of a journal record that a newer program has written; nil if there is none.
  private(set) var newer: Int?
  /// Unreadable records of the journal.
  private(set) var unreadable = 0

  /// The bytes of waiting journal at which its reading stops and continues.
  private static let (high, low) = (256 << 10, 64 << 10)

  /// - Parameters:
  ///   - requests: the requests to read.
  ///   - reach: see ``JournalJoin``.
  ///   - out: gets the results.
  init(_ requests: TopicStretch, reach: Int, _ out: @escaping (JournalJoin.Outcome) -> Void) {
    partition = requests.partition.partition
    offsets = requests.offsets
    join = JournalJoin(from: requests.offsets.lowerBound, reach: reach)
    self.out = out
  }

  /// Takes the next record of `requests`; nil if it is not audited.
  func take(_ request: AuditFact?, at offset: Int64) {
    join.take(request, at: offset, out)
    if !unread.isEmpty { readJournal() }
  }

  /// Takes the next record of the journal.
  func takeJournal(_ record: RecordView) {
    guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else {
      newer = JournalRecord.newerVersion(record.texts) ?? newer
      return unreadable += 1
    }
    unread.append((journal, Array(value), record.offset))
    bytes += value.count
    readJournal()
  }

  /// Notes that no more requests come.
  func endRequests() {
    join.endRequests(out)
    readJournal()
  }

  /// Notes that no more journal records come.
  func endJournal() {
    hasJournal = false
    readJournal()
  }

  /// Whether the requests must wait for the journal.
  var requestsWait: Bool { join.requestsWait() }

  /// Whether the journal must wait for the requests.
  var journalWaits: Bool {
    isWaiting = bytes >= (isWaiting ? Self.low : Self.high)
    return isWaiting
  }

  private func readJournal() {
    while !join.notesWait, let record = unread.popFirst() {
      bytes -= record.value.count
      record.value.withUnsafeBytes { read(record.journal, $0, record.offset) }
    }
    if !hasJournal, unread.isEmpty { join.endNotes(out) }
  }

  private func read(_ journal: JournalRecord, _ value: UnsafeRawBufferPointer, _ offset: Int64) {
    incarnation = max(incarnation, UInt16(truncatingIfNeeded: journal.incarnation))
    let worker = UInt32(truncatingIfNeeded: StableHash.hash(journal.worker))
    let isReadable: Void? = try? journal.forEachEntry(in: value, partition: partition) { entry in
      if case .unreadable(let count) = entry.content {
        stretches.append((entry.offset..<entry.offset + count, UInt16(truncatingIfNeeded: journal.incarnation)))
      } else if offsets.contains(entry.offset), let note = JournalNote(entry, of: journal, worker: worker, partition, offset) {
        join.take(note, out)
      }
    }
    if isReadable == nil { unreadable += 1 }
  }
}
