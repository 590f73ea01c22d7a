import Notifications

/// Joins the requests of one partition with their journal entries, both read side by side. A value.
///
/// A request and its entry become one fact. The first one waits for the other in a ring. A request that leaves the ring is emitted alone.
/// An entry whose request has left is *late*. Each request is emitted once, and each entry at most once.
struct JournalJoin {
  /// A result.
  enum Outcome {
    /// A request with or without its journal entry, or an entry's devices.
    case fact(AuditFact)
    /// An entry too far before or after its request, or a repeated one.
    case late(JournalNote)
  }

  private var requests: OffsetRing<AuditFact>
  private var notes: OffsetRing<JournalNote>
  /// The leads of the requests. Below the low one they continue, and at the high one they wait.
  ///
  /// The journal waits at the low one.
  private let marks: (low: Int64, high: Int64)
  /// The offsets after the last request, and after the highest one of an entry.
  private var nextRequest: Int64
  private var nextNote: Int64
  /// The earliest time of a request so far.
  private var since = Int64.max
  private var hasRequests = true
  private var hasNotes = true
  private var requestsWaited = false

  /// - Parameters:
  ///   - start: the first offset of the requests to read.
  ///   - reach: the number of slots of the rings, a power of two; 100 bytes each.
  init(from start: Int64, reach: Int) {
    requests = OffsetRing(maximum: max(1, reach / 2))
    notes = OffsetRing(maximum: reach)
    marks = (Int64(reach / 8), Int64(reach / 4))
    (nextRequest, nextNote) = (start, start)
  }

  // MARK: In

  /// Takes the next record of `requests`; nil if it is not audited.
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
    // Entries of a former topic do not show how far the journal has come.
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

  /// Notes that no more requests come.
  mutating func endRequests(_ out: (Outcome) -> Void) {
    hasRequests = false
    notes.takeAll { out(.late($0)) }
  }

  /// Notes that no more entries come.
  mutating func endNotes(_ out: (Outcome) -> Void) {
    hasNotes = false
    requests.takeAll { out(.fact($0)) }
  }

  // MARK: Waiting

  /// Whether the requests are so far ahead that they must wait for the journal.
  mutating func requestsWait() -> Bool {
    let ahead = nextRequest - nextNote
    requestsWaited = hasNotes && ahead >= (requestsWaited ? marks.low : marks.high)
    return requestsWaited
  }

  /// Whether the journal is so far ahead that it must wait for the requests.
  var notesWait: Bool { hasRequests && nextNote - nextRequest >= marks.low }

  // MARK: Joining

  private static func join(_ request: AuditFact, _ note: JournalNote, _ out: (Outcome) -> Void) {
    var request = request
    if note.fact.kind == .page || note.fact.outcome?.isOfWholeRequest == true {
      out(.fact(note.fact.told(of: request)))
    } else {
      request.journal(note.fact)
    }
    for fact in note.more { out(.fact(fact.told(of: request))) }
    out(.fact(request))
  }
}
