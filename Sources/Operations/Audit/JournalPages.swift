/// What the journal says of a person's devices: whether there are pages that fit their sum, and since when. A value.
///
/// A crash between two pages leaves pages without a sum; the request is judged again then, and the later pages tell. Pages may lie behind their
/// sum: a record that Kafka refused is sent again behind others.
struct JournalPages {
  /// All devices are told.
  private(set) var isComplete = false
  /// Where the journal's record of the first of the last complete pages lies.
  private var start: Int64 = .min

  /// Finds the last complete pages among what is told of a request.
  init(_ facts: ArraySlice<AuditFact>) {
    // One page that has all devices.
    if let last = facts.filter({ $0.kind == .judged }).max(by: { $0.offset < $1.offset }) { (isComplete, start) = (true, last.offset) }
    guard facts.contains(where: { $0.kind == .closing }) else { return }
    let pages = facts.filter { $0.kind == .page }.sorted(by: Self.precedes)
    for closing in facts where closing.kind == .closing {
      let ofWorker = pages.filter { $0.worker == closing.worker }
      let before = ofWorker.filter { Self.precedes($0, closing) }
      // Those behind it have the same time or an earlier one.
      let first = Self.first(of: before, for: closing) ?? Self.first(of: ofWorker.filter { $0.time <= closing.time }, for: closing)
      if let first { (isComplete, start) = (true, max(start, first)) }
    }
  }

  /// Whether a device is not the person's any more by the last complete pages, on which it would stand once more.
  func supersedes(_ fact: AuditFact) -> Bool { isComplete && fact.offset < start }

  /// In the order in which they were written.
  private static func precedes(_ a: AuditFact, _ b: AuditFact) -> Bool {
    if a.offset != b.offset { return a.offset < b.offset }
    return a.revision != b.revision ? a.revision < b.revision : a.kind == .page && b.kind == .closing
  }

  /// Where the last pages begin that together have as many devices as the closing says, and the same ones.
  private static func first(of pages: [AuditFact], for closing: AuditFact) -> Int64? {
    var (count, checksum): (Int64, UInt64) = (0, 0)
    var first = closing.offset
    for page in pages.reversed() {
      count += page.number
      checksum ^= page.statement
      first = min(first, page.offset)
      if count == closing.number, checksum == closing.statement { return first }
      if count > closing.number { return nil }
    }
    return nil
  }
}
