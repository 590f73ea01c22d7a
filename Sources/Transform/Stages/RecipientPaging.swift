import Notifications
import Store

/// Which requests for people bring which page of their devices now, and how far each is: a value.
struct RecipientPaging {
  private var pages = RecipientPages()

  /// Where a request for a person stands.
  struct Progress {
    /// The application and the person, in the arena.
    let application: ArenaSpan
    let user: ArenaSpan
    /// The same for all devices, but for those of `variants`.
    let entry: RequestEntry
    /// What devices get, where it depends on the device.
    let variants: ContentVariants?
    /// How many devices it went to so far.
    var devices = 0
    /// The last page of devices has come.
    fileprivate(set) var isComplete = false
    /// Devices of the present page that are not yet judged.
    fileprivate var unjudged = 0
    /// The greatest token of the present page: where the next begins.
    fileprivate(set) var last = ArenaSpan()
    /// Bytes that the present page retains until it is judged.
    fileprivate var bytes = 0
    /// The verdicts on the devices of the present page.
    private(set) var page: [(token: ArenaSpan, judgement: JournalJudgement)] = []
    /// The sum of all devices so far.
    private(set) var closing = JournalEntry.Closing()

    init(application: ArenaSpan, user: ArenaSpan, entry: RequestEntry, variants: ContentVariants?) {
      (self.application, self.user, self.entry, self.variants) = (application, user, entry, variants)
    }

    fileprivate mutating func note(_ token: ArenaSpan, _ judgement: JournalJudgement, in arena: Arena) {
      page.append((token, judgement))
      arena.bytes.withUnsafeBytes { closing.add($0[token]) }
    }

    /// The page's verdicts stand in the journal.
    fileprivate mutating func turn() { page.removeAll(keepingCapacity: true) }
  }

  /// What is to be done for a request.
  enum Step {
    /// Devices of its page are still to be judged.
    case wait
    /// Its next page is due.
    case next
    /// All its devices are judged.
    case end
  }

  // MARK: Turns

  /// Whether requests wait for their turn.
  var isWaiting: Bool { pages.isWaiting }

  /// Whether a request may ask for its page now, its page then counting as asked for; otherwise it waits for its turn.
  mutating func mayAsk(_ slot: Flow.Slot, _ progress: Progress?, isBusy: Bool) -> Bool {
    if !isBusy, !pages.isWaiting, pages.begin() { return true }
    pages.wait(slot, isGoing: (progress?.last.count ?? 0) > 0)
    return false
  }

  /// The next request whose turn it is, its page counting as asked for.
  mutating func next() -> Flow.Slot? { pages.next() }

  // MARK: A page

  /// A page that was asked for has come, or will not.
  mutating func came() { pages.came() }

  /// Takes a page that has come; its devices are all to be judged.
  ///
  /// - Returns: the tokens of devices, in the arena, and what else was in the set.
  mutating func take(_ page: Recipients.Page, _ record: inout InFlightRecord) -> (tokens: [ArenaSpan], others: [ArenaSpan]) {
    guard var progress = record.recipients else { return ([], []) }
    var (tokens, others): ([ArenaSpan], [ArenaSpan]) = ([], [])
    tokens.reserveCapacity(page.count)
    let before = record.batch.arena.bytes.count
    page.forEach { member, isToken in
      let span = record.batch.arena.keep(member)
      if isToken { tokens.append(span) } else { others.append(span) }
      progress.last = span
    }
    record.batch.grew(by: record.batch.arena.bytes.count - before)
    progress.isComplete = page.isLast
    progress.unjudged = tokens.count
    progress.bytes = tokens.count * (progress.entry.span.count + RetainedBatch.entryBytes)
    pages.hold(progress.bytes)
    record.recipients = progress
    return (tokens, others)
  }

  /// The devices of the present page get these entries, which may be larger than the one that was published.
  mutating func holds(_ entries: [RequestEntry], _ record: inout InFlightRecord) {
    let bytes = entries.reduce(0) { $0 + $1.span.count + RetainedBatch.entryBytes }
    guard let held = record.recipients?.bytes else { return }
    pages.hold(bytes - held)
    record.recipients?.bytes = bytes
  }

  /// A device of the present page is judged.
  ///
  /// A device that is not the person's any more does not count: the request did not go to it.
  func judged(_ record: inout InFlightRecord, _ token: ArenaSpan, _ judgement: JournalJudgement) {
    record.recipients?.unjudged -= 1
    if judgement.verdict != .wrongUser { record.recipients?.devices += 1 }
    let arena = record.batch.arena
    record.recipients?.note(token, judgement, in: arena)
  }

  /// Whether the present page is judged, and all of it worked.
  func isJudged(_ record: borrowing InFlightRecord) -> Bool { record.recipients?.unjudged == 0 }

  /// What comes next; a page that is judged retains nothing any more.
  mutating func step(_ record: inout InFlightRecord) -> Step {
    guard let progress = record.recipients, progress.unjudged == 0 else { return .wait }
    leave(&record)
    record.recipients?.turn()
    return progress.isComplete ? .end : .next
  }

  /// What the present page retained is free.
  mutating func leave(_ record: inout InFlightRecord) {
    guard let bytes = record.recipients?.bytes else { return }
    record.recipients?.bytes = 0
    pages.judged(bytes)
  }
}
