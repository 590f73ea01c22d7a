import Kafka
import Notifications

extension FactReader {
  /// A record of the journal: calls `body` with each entry for requests at these offsets. False where it is none; what comes before the
  /// fault was handed out.
  func journal(_ record: RecordView, of offsets: Range<Int64>, _ body: (JournalNote) -> Void) -> Bool {
    guard let value = record.value, let journal = try? JournalRecord(headers: record.texts, value: value) else { return false }
    return
      (try? journal.forEachEntry(in: value, partition: record.partition) { entry in
        if offsets.contains(entry.offset) { body(JournalNote(entry, of: journal, record.partition, record.offset)) }
      }) != nil
  }
}

extension JournalNote {
  /// An entry of a record of the journal, which lies at this offset.
  init(_ entry: JournalEntry, of journal: JournalRecord, _ partition: Int32, _ offset: Int64) {
    timestamp = Timestamp.bounded(entry.timestamp)
    fact = AuditFact(.judged)
    (fact.partition, fact.offset, fact.time) = (partition, offset, Timestamp.bounded(journal.judgedAt))
    (fact.sourcePartition, fact.sourceOffset) = (partition, entry.offset)
    fact.worker = UInt32(truncatingIfNeeded: StableHash.hash(journal.worker))
    fact.incarnation = UInt16(truncatingIfNeeded: journal.incarnation)
    switch entry.content {
    case .request(let judgement):
      guard judgement.verdict == .kept else { return }
      fact.kind = .kept
      fact.revision = judgement.revision.timestamp
    case .page(let page): take(page)
    }
  }

  private mutating func take(_ page: JournalEntry.Page) {
    var sum = JournalEntry.Closing()
    for device in page.devices {
      let hash = device.token.hash64()
      (sum.devices, sum.checksum) = (sum.devices + 1, sum.checksum ^ hash)
      guard device.judgement.verdict == .kept else { continue }
      var kept = fact
      (kept.kind, kept.device, kept.revision) = (.kept, max(1, hash), device.judgement.revision.timestamp)
      more.append(kept)
    }
    // One page that has all devices needs no counting.
    guard page.closing != sum else { return }
    if let closing = page.closing { more.append(fact.summing(closing, as: .closing)) }
    fact = fact.summing(sum, as: .page)
  }
}

extension AuditFact {
  fileprivate func summing(_ sum: JournalEntry.Closing, as kind: Kind) -> AuditFact {
    var fact = self
    (fact.kind, fact.number, fact.statement) = (kind, Int64(clamping: sum.devices), sum.checksum)
    return fact
  }
}
