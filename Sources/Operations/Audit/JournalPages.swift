/// What the journal says of a person's devices: whether there are pages that fit their sum, and since when. A value.
///
/// A crash between two pages leaves pages without a sum; the request is judged again then, and the later pages tell.
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
    var pages: [AuditFact] = []
    for fact in facts.filter({ $0.kind == .page || $0.kind == .closing }).sorted(by: Self.precedes) {
      if fact.kind == .page {
        pages.append(fact)
      } else if let first = Self.first(of: pages.filter({ $0.worker == fact.worker }), for: fact) {
        (isComplete, start) = (true, max(start, first.offset))
      }
    }
  }

  /// Whether a device is not the person's any more by the last complete pages, on which it would stand once more.
  func supersedes(_ fact: AuditFact) -> Bool { isComplete && fact.offset < start }

  /// In the order in which they were written.
  private static func precedes(_ a: AuditFact, _ b: AuditFact) -> Bool {
    if a.offset != b.offset { return a.offset < b.offset }
    return a.revision != b.revision ? a.revision < b.revision : a.kind == .page && b.kind == .closing
  }

  /// The first of the last pages that together have as many devices as the closing says, and the same ones.
  private static func first(of pages: [AuditFact], for closing: AuditFact) -> AuditFact? {
    var (count, checksum): (Int64, UInt64) = (0, 0)
    for page in pages.reversed() {
      count += page.number
      checksum ^= page.statement
      if count == closing.number, checksum == closing.statement { return page }
      if count > closing.number { return nil }
    }
    return nil
  }
}
