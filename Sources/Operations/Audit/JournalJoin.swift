import Notifications

/// Joins the requests of one partition with what the journal says of them, both as they are read side by side. A value.
///
/// A request and its entry become one fact. Who comes first waits for the other in a ring; a request that has waited for as long as the ring
/// reaches goes on without, and an entry whose request has gone is *late*. Each request comes out once, each entry at most once.
struct JournalJoin {
  /// What comes out.
  enum Outcome {
    /// A request with what the journal says of it, or without; and what it says of a person's devices.
    case fact(AuditFact)
    /// An entry that has come before or after its request, by more than the ring reaches, or once more.
    case late(JournalNote)
  }

  private var requests: OffsetRing<AuditFact>
  private var notes: OffsetRing<JournalNote>
  /// How far the requests may be ahead when they go on after a wait, and when they begin to wait; the journal waits at the lower.
  private let marks: (low: Int64, high: Int64)
  /// Behind the last request that was taken, and behind the greatest offset that an entry was for.
  private var nextRequest: Int64
  private var nextNote: Int64
  /// The earliest time of a request so far.
  private var since = Int64.max
  private var hasRequests = true
  private var hasNotes = true
  private var requestsWaited = false

  /// - Parameters:
  ///   - start: where reading of the requests begins.
  ///   - reach: slots of the rings, a power of two: 100 bytes each.
  init(from start: Int64, reach: Int) {
    requests = OffsetRing(maximum: max(1, reach / 2))
    notes = OffsetRing(maximum: reach)
    marks = (Int64(reach / 8), Int64(reach / 4))
    (nextRequest, nextNote) = (start, start)
  }

  // MARK: In

  /// Takes the next record of `requests`; nil for one that is not audited.
  mutating func take(_ request: AuditFact?, at offset: Int64, _ out: (Outcome) -> Void) {
    nextRequest = offset + 1
    let note = notes.take(offset)
    guard let request else { return }
    if since == .max { nextNote = min(nextNote, nextRequest) }
    since = min(since, request.time)
    if let note, note.timestamp == request.time {
      Self.join(request, note, out)
    } else if hasNotes {
      if let other = requests.put(request, at: offset) { out(.fact(other.element)) }
    } else {
      out(.fact(request))
    }
  }

  /// Takes the next entry of the journal.
  mutating func take(_ note: JournalNote, _ out: (Outcome) -> Void) {
    let offset = note.fact.sourceOffset
    // What is told of a former topic says nothing of how far the journal has come.
    if since == .max || note.timestamp >= since { nextNote = max(nextNote, offset + 1) }
    if let request = requests.take(offset) {
      if request.time == note.timestamp { return Self.join(request, note, out) }
      _ = requests.put(request, at: offset)
    } else if offset >= nextRequest, hasRequests, !notes.contains(offset) {
      if let other = notes.put(note, at: offset) { out(.late(other.element)) }
    } else {
      out(.late(note))
    }
  }

  /// No more requests come.
  mutating func endRequests(_ out: (Outcome) -> Void) {
    hasRequests = false
    notes.takeAll { out(.late($0)) }
  }

  /// No more entries come.
  mutating func endNotes(_ out: (Outcome) -> Void) {
    hasNotes = false
    requests.takeAll { out(.fact($0)) }
  }

  // MARK: In step

  /// Whether the requests are so far ahead that they wait for the journal.
  mutating func requestsWait() -> Bool {
    let ahead = nextRequest - nextNote
    requestsWaited = hasNotes && ahead >= (requestsWaited ? marks.low : marks.high)
    return requestsWaited
  }

  /// Whether the journal is so far ahead that it waits for the requests.
  var notesWait: Bool { hasRequests && nextNote - nextRequest >= marks.low }

  // MARK: Together

  private static func join(_ request: AuditFact, _ note: JournalNote, _ out: (Outcome) -> Void) {
    var request = request
    switch note.fact.kind {
    case .page, .applied: out(.fact(note.fact.told(of: request)))
    default: request.journal(note.fact)
    }
    for fact in note.more { out(.fact(fact.told(of: request))) }
    out(.fact(request))
  }
}
