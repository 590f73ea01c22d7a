import Notifications

/// Requests, and the journal's entries about them, joined by the positions of the requests' records.
///
/// An entry may come long after its request, and more than once: a lane rewound, or a record waited for hours. So both are spilled by
/// position.
struct JournalJoin: ~Copyable {
  private var byPlace: Spill<AuditFact>

  /// - Parameter expected: the number of requests and entries.
  init(expecting expected: Int64, in folder: String) { byPlace = Spill(expecting: expected, in: folder) }

  /// The bytes on disk.
  var bytesOnDisk: Int { byPlace.bytesOnDisk }

  /// Takes a request or a fact of an entry. All requests come first.
  mutating func add(_ fact: AuditFact) throws(SpillError) {
    let place = fact.recordPlace
    try byPlace.add(fact, hash: UInt64(bitPattern: place.offset) &* 31 &+ UInt64(UInt32(bitPattern: place.partition)))
  }

  /// Calls `body` with each request, and with the facts of its entries in the topic's present incarnation.
  ///
  /// An entry without a request, or with another timestamp than the request at its offset, does not count.
  mutating func join(_ rules: AuditRules, _ body: (AuditFact) -> Void) throws(SpillError) {
    for part in 0..<byPlace.parts {
      let facts = try byPlace.take(part)
      var requests: [RecordPlace: Int] = [:]
      for (index, fact) in facts.enumerated() {
        if fact.kind == .request {
          requests[fact.recordPlace] = index
          body(fact)
        } else if let request = requests[fact.recordPlace].map({ facts[$0] }), fact.identifier == UInt64(bitPattern: request.time),
          rules.isPresent(fact)
        {
          body(fact.told(of: request))
        }
      }
    }
  }
}

extension AuditFact {
  /// The part of a journal record at this position that all of its facts share.
  init(_ journal: JournalRecord, at place: RecordPlace) {
    self.init(.judged)
    (partition, offset, time) = (place.partition, place.offset, Timestamp.bounded(journal.judgedAt))
    worker = UInt32(truncatingIfNeeded: StableHash.hash(journal.worker))
    incarnation = UInt16(truncatingIfNeeded: journal.incarnation)
  }

  /// Calls `body` with each fact of an entry of this journal record.
  func forEach(of entry: JournalEntry, _ body: (AuditFact) -> Void) {
    let published = Timestamp.bounded(entry.timestamp)
    var fact = self
    (fact.sourcePartition, fact.sourceOffset) = (partition, entry.offset)
    // The journal record has the time of its first entry, which may be before a later entry's request.
    (fact.time, fact.identifier) = (max(time, published), UInt64(bitPattern: published))
    switch entry.content {
    case .request(let judgement) where judgement.verdict == .queued: body(fact.kept(judgement))
    case .request(let judgement):
      if judgement.verdict.isOfWholeRequest {
        (fact.kind, fact.statement) = (.told(judgement.verdict), judgement.other.map(ScheduleFact.schedule) ?? 0)
      }
      body(fact)
    case .page(let page):
      var sum = JournalEntry.Closing()
      for device in page.devices {
        let hash = device.token.hash64()
        (sum.devices, sum.checksum) = (sum.devices + 1, sum.checksum ^ hash)
        if device.judgement.verdict == .queued { body(fact.kept(device.judgement, by: max(1, hash))) }
      }
      // A single page with all devices needs no count.
      guard page.closing != sum else { return body(fact) }
      if let closing = page.closing { body(fact.summing(closing, as: .closing)) }
      body(fact.summing(sum, as: .page))
    case .extensions, .unreadable: break
    }
  }

  private func kept(_ judgement: JournalJudgement, by device: UInt64 = 0) -> AuditFact {
    var fact = self
    (fact.kind, fact.device, fact.revision) = (.told(.queued), device, judgement.revision.timestamp)
    return fact
  }

  private func summing(_ sum: JournalEntry.Closing, as kind: Kind) -> AuditFact {
    var fact = self
    (fact.kind, fact.number, fact.statement) = (kind, Int64(clamping: sum.devices), sum.checksum)
    return fact
  }

  /// The position of the request's record, for a request or for an entry that is not joined.
  fileprivate var recordPlace: RecordPlace { kind == .request ? RecordPlace(partition: partition, offset: offset) : source }

  /// Returns an entry of the journal with the facts of its request.
  fileprivate func told(of request: AuditFact) -> AuditFact {
    var fact = self
    (fact.id, fact.identifier) = (request.id, request.identifier)
    (fact.sourcePartition, fact.sourceOffset) = (request.sourcePartition, request.sourceOffset)
    fact.flags.formUnion(request.flags.intersection(.isOfTopic))
    if kind != .page, kind != .closing { fact.number = request.offset }
    if outcome == .queued, device == 0 { fact.device = request.device }
    return fact
  }
}
