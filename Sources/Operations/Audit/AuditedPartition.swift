import Kafka
import Notifications

/// A partition of requests and its journal, as they are read side by side. Loop-confined.
///
/// A fetch brings a few hundred requests, or what the journal says of fifty thousand: so records of the journal wait as they are, in some two
/// bytes for a request, until the requests have come near to what they tell of.
final class AuditedPartition {
  private struct Unread {
    let journal: JournalRecord
    let value: [UInt8]
    let offset: Int64
  }

  private let partition: Int32
  /// The requests that may be audited.
  private let offsets: Range<Int64>
  private var join: JournalJoin
  private var unread: [Unread] = []
  private var next = 0
  private var bytes = 0
  private var hasJournal = true
  private var isWaiting = false
  private let out: (JournalJoin.Outcome) -> Void
  /// The greatest incarnation of the topic that the journal tells of.
  private(set) var incarnation: UInt16 = 0
  /// Offsets that workers could not read, as the journal says.
  private(set) var stretches: [(offsets: Range<Int64>, incarnation: UInt16)] = []
  /// Records of the journal that cannot be read.
  private(set) var unreadable = 0

  /// What waits of a partition's journal before it is not read on, and as it is read on again, in bytes.
  private static let (high, low) = (256 << 10, 64 << 10)

  /// - Parameters:
  ///   - requests: the stretch of the requests that is read.
  ///   - reach: see ``JournalJoin``.
  ///   - out: takes what comes out.
  init(_ requests: TopicStretch, reach: Int, _ out: @escaping (JournalJoin.Outcome) -> Void) {
    partition = requests.partition.partition
    offsets = requests.offsets
    join = JournalJoin(from: requests.offsets.lowerBound, reach: reach)
    self.out = out
  }

  /// Takes the next record of `requests`; nil for one that is not audited.
  func take(_ request: AuditFact?, at offset: Int64) {
    join.take(request, at: offset, out)
    if next < unread.count { readJournal() }
  }

  /// Takes the next record of the journal.
  func takeJournal(_ record: RecordView) {
    guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else { return unreadable += 1 }
    unread.append(Unread(journal: journal, value: Array(value), offset: record.offset))
    bytes += value.count
    readJournal()
  }

  /// No more requests come.
  func endRequests() {
    join.endRequests(out)
    readJournal()
  }

  /// No more of the journal comes.
  func endJournal() {
    hasJournal = false
    readJournal()
  }

  /// Whether the requests wait for the journal.
  var requestsWait: Bool { join.requestsWait() }

  /// Whether the journal waits for the requests.
  var journalWaits: Bool {
    isWaiting = bytes >= (isWaiting ? Self.low : Self.high)
    return isWaiting
  }

  private func readJournal() {
    while next < unread.count, !join.notesWait {
      let record = unread[next]
      next += 1
      bytes -= record.value.count
      record.value.withUnsafeBytes { read(record.journal, $0, record.offset) }
    }
    if next == unread.count || next > 1_000 {
      unread.removeFirst(next)
      next = 0
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
