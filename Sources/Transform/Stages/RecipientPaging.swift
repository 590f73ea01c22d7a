import Notifications
import Store

/// Decides which requests for persons ask for a page of devices now, and knows how far each is. A value.
struct RecipientPaging {
  private var pages = PageRoom()

  /// The progress of a request for a person.
  struct Progress {
    /// The set that the pages are read from.
    let set: RecipientSet
    /// The entry that all devices get, unless there are `variants`.
    let entry: RequestEntry
    /// The contents that devices get, where these depend on the device.
    let variants: ContentVariants?
    /// The time zone whose devices it is for; nil: it is for all.
    let zone: Name?
    /// The zones of the person's devices by their tokens, as far as they are known already.
    let zones: [Name: Name]
    /// How many devices the request went to so far.
    var devices = 0
    /// The last page of devices has come.
    fileprivate(set) var isComplete = false
    /// Devices of the present page that are not yet judged.
    fileprivate var unjudged = 0
    /// The greatest token of the present page. The next page begins after it.
    fileprivate(set) var last = ArenaSpan()
    /// Bytes that the present page retains until it is judged.
    fileprivate var bytes = 0
    /// The verdicts on the devices of the present page.
    private(set) var page: [(token: ArenaSpan, judgement: JournalJudgement)] = []
    /// The sum of all devices so far.
    private(set) var closing = JournalEntry.Closing()

    init(_ set: RecipientSet, entry: RequestEntry, variants: ContentVariants?, zone: Name?, zones: [Name: Name]) {
      (self.set, self.entry, self.variants, self.zone, self.zones) = (set, entry, variants, zone, zones)
    }

    fileprivate mutating func note(_ token: ArenaSpan, _ judgement: JournalJudgement, in arena: Arena) {
      page.append((token, judgement))
      arena.bytes.withUnsafeBytes { closing.add($0[token]) }
    }

    /// The journal has the page's verdicts.
    fileprivate mutating func turn() { page.removeAll(keepingCapacity: true) }
  }

  /// The next step of a request.
  enum Step {
    /// Some devices of the page are not judged yet.
    case wait
    /// The next page is due.
    case next
    /// All devices are judged.
    case end
  }

  // MARK: Order

  /// Whether requests wait to ask for a page.
  var isWaiting: Bool { pages.isWaiting }

  /// Whether a request may ask for its page now. Then the page counts as asked for; else the request waits.
  mutating func mayAsk(_ slot: Slot, _ progress: Progress?, isBusy: Bool) -> Bool {
    if !isBusy, !pages.isWaiting, pages.begin() { return true }
    pages.wait(slot, isGoing: (progress?.last.count ?? 0) > 0)
    return false
  }

  /// The next waiting request that may ask for its page now. The page counts as asked for.
  mutating func next() -> Slot? { pages.next() }

  // MARK: A page

  /// A page that was asked for has come, or has failed.
  mutating func came() { pages.came() }

  /// Takes a page that has come. All its devices are judged next. Members that are no tokens were not written by Carillon, and are left out.
  ///
  /// - Returns: the tokens, in the arena.
  mutating func take(_ page: Recipients.Page, _ record: inout InFlightRecord) -> [ArenaSpan] {
    guard var progress = record.recipients else { return [] }
    var tokens: [ArenaSpan] = []
    tokens.reserveCapacity(page.count)
    let before = record.batch.arena.bytes.count
    page.forEach { member, isToken in
      let span = record.batch.arena.keep(member)
      if isToken { tokens.append(span) }
      progress.last = span
    }
    record.batch.grew(by: record.batch.arena.bytes.count - before)
    progress.isComplete = page.isLast
    progress.unjudged = tokens.count
    progress.bytes = tokens.count * (progress.entry.span.count + RetainedBatch.entryBytes)
    pages.hold(progress.bytes)
    record.recipients = progress
    return tokens
  }

  /// The devices of the present page get these entries, which may be larger than the published one.
  mutating func holds(_ entries: [RequestEntry], _ record: inout InFlightRecord) {
    let bytes = entries.reduce(0) { $0 + $1.span.count + RetainedBatch.entryBytes }
    guard let held = record.recipients?.bytes else { return }
    pages.hold(bytes - held)
    record.recipients?.bytes = bytes
  }

  /// A device of the present page is judged. One that has another user by now does not count: the request did not go to it.
  func judged(_ record: inout InFlightRecord, _ token: ArenaSpan, _ judgement: JournalJudgement) {
    record.recipients?.unjudged -= 1
    if judgement.verdict != .wrongUser { record.recipients?.devices += 1 }
    let arena = record.batch.arena
    record.recipients?.note(token, judgement, in: arena)
  }

  /// Whether all devices of the present page are judged.
  func isJudged(_ record: borrowing InFlightRecord) -> Bool { record.recipients?.unjudged == 0 }

  /// Decides the next step. A judged page releases its room.
  mutating func step(_ record: inout InFlightRecord) -> Step {
    guard let progress = record.recipients, progress.unjudged == 0 else { return .wait }
    leave(&record)
    record.recipients?.turn()
    return progress.isComplete ? .end : .next
  }

  /// Releases the room of the present page.
  mutating func leave(_ record: inout InFlightRecord) {
    guard let bytes = record.recipients?.bytes else { return }
    record.recipients?.bytes = 0
    pages.judged(bytes)
  }
}
