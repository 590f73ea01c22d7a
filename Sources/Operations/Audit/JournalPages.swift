/// The journal's pages of a person's devices: whether they are complete, and since when. A value.
///
/// A crash between two pages leaves pages without a closing. The request is then judged again, and the later pages count. Pages may come
/// after their closing, because a refused journal record is sent again behind others.
struct JournalPages {
  /// Whether there is a complete set of pages.
  private(set) var isComplete = false
  /// The offset of the first journal record of the last complete set.
  private var start: Int64 = .min

  /// Finds the last complete set of pages in the facts of a request.
  init(_ facts: ArraySlice<AuditFact>) {
    // A single page can have all devices.
    if let last = facts.filter({ $0.kind == .judged }).max(by: { $0.offset < $1.offset }) { (isComplete, start) = (true, last.offset) }
    guard facts.contains(where: { $0.kind == .closing }) else { return }
    let pages = facts.filter { $0.kind == .page }.sorted(by: Self.precedes)
    for closing in facts where closing.kind == .closing {
      let ofWorker = pages.filter { $0.worker == closing.worker }
      let before = ofWorker.filter { Self.precedes($0, closing) }
      // Pages after the closing have its time or an earlier one.
      let first = Self.first(of: before, for: closing) ?? Self.first(of: ofWorker.filter { $0.time <= closing.time }, for: closing)
      if let first { (isComplete, start) = (true, max(start, first)) }
    }
  }

  /// Whether a device is missing on the later complete pages, because it left the person.
  func supersedes(_ fact: AuditFact) -> Bool { isComplete && fact.offset < start }

  /// Compares in the order of writing.
  private static func precedes(_ a: AuditFact, _ b: AuditFact) -> Bool {
    a.offset != b.offset ? a.offset < b.offset : a.kind == .page && b.kind == .closing
  }

  /// Finds the first of the last pages that match the closing.
  ///
  /// Their number of devices and their checksum match.
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
