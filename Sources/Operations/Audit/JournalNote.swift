import Notifications

/// A journal entry on one record of `requests`, before that record is known.
struct JournalNote: Sendable {
  /// The timestamp of the record.
  var timestamp: Int64
  /// The entry as a fact, with the position of its request as the source.
  ///
  /// Its kind is `judged`, `page`, or `told` with `queued` or an outcome of a complete request.
  var fact: AuditFact
  /// Further facts of a page: each device that keeps the request, and the closing.
  var more: [AuditFact] = []
}

extension JournalNote {
  /// Reads an entry of a journal record at this offset.
  ///
  /// - Parameter worker: the hash of the worker's name.
  /// - Returns: nil if the entry is not a verdict.
  init?(_ entry: JournalEntry, of journal: JournalRecord, worker: UInt32, _ partition: Int32, _ offset: Int64) {
    timestamp = Timestamp.bounded(entry.timestamp)
    fact = AuditFact(.judged)
    // The journal record has the time of its first entry, which may be before a later entry's request.
    (fact.partition, fact.offset, fact.time) = (partition, offset, max(timestamp, Timestamp.bounded(journal.judgedAt)))
    (fact.sourcePartition, fact.sourceOffset) = (partition, entry.offset)
    fact.worker = worker
    fact.incarnation = UInt16(truncatingIfNeeded: journal.incarnation)
    switch entry.content {
    case .request(let judgement):
      guard judgement.verdict == .queued || judgement.verdict.isOfWholeRequest else { return }
      fact.kind = .told(judgement.verdict)
      if judgement.verdict == .queued { fact.revision = judgement.revision.timestamp } else { fact.supersede(judgement.other) }
    case .page(let page): take(page)
    case .extensions, .unreadable: return nil
    }
  }

  private mutating func take(_ page: JournalEntry.Page) {
    var sum = JournalEntry.Closing()
    for device in page.devices {
      let hash = device.token.hash64()
      (sum.devices, sum.checksum) = (sum.devices + 1, sum.checksum ^ hash)
      guard device.judgement.verdict == .queued else { continue }
      var kept = fact
      (kept.kind, kept.device, kept.revision) = (.told(.queued), max(1, hash), device.judgement.revision.timestamp)
      more.append(kept)
    }
    // A single page with all devices needs no count.
    guard page.closing != sum else { return }
    if let closing = page.closing { more.append(fact.summing(closing, as: .closing)) }
    fact = fact.summing(sum, as: .page)
  }
}

extension AuditFact {
  fileprivate mutating func supersede(_ other: JournalReference?) {
    guard let schedule = other.map(ScheduleFact.Schedule.init) else { return }
    (statement, revision, identifier) = (schedule.id, UInt64(schedule.partition), schedule.offset)
  }

  fileprivate func summing(_ sum: JournalEntry.Closing, as kind: Kind) -> AuditFact {
    var fact = self
    (fact.kind, fact.number, fact.statement) = (kind, Int64(clamping: sum.devices), sum.checksum)
    return fact
  }
}
