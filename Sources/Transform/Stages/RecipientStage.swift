import Notifications
import Store
import Worker

/// Finds out for which devices a request is, and has it judged for each: one device is its own, a person's come a page at a time.
/// Loop-confined.
final class RecipientStage {
  private let inFlight: InFlight
  private let recipients: Recipients
  private let locales: Locales
  private let judge: JudgeStage
  private let reader: RequestReader
  private let outcomes: Outcomes
  private let journal: Journal?
  private let journaled: JournaledVerdicts?
  private let metrics: TransformMetrics
  private let logger: Logger
  private var paging = RecipientPaging()
  private var isAsking = false

  /// - Parameters:
  ///   - journal: nil: nothing is written of what is judged.
  ///   - journaled: how requests were judged, where a Redis is rebuilt.
  init(
    _ recipients: Recipients, _ locales: Locales, _ inFlight: InFlight, _ judge: JudgeStage, _ reader: RequestReader,
    _ outcomes: Outcomes, journal: Journal?, journaled: JournaledVerdicts?, metrics: TransformMetrics, logger: Logger
  ) {
    self.inFlight = inFlight
    self.recipients = recipients
    self.locales = locales
    self.judge = judge
    self.reader = reader
    self.outcomes = outcomes
    self.journal = journal
    self.journaled = journaled
    self.metrics = metrics
    self.logger = logger
  }

  /// Takes a request that is to be judged.
  func take(_ slot: Flow.Slot, _ content: RequestContent) {
    switch content.receiver {
    case .device(let token): judge.take(slot, content.arena, token, content.entry)
    case .person(let user, let application):
      inFlight[slot].recipients = RecipientPaging.Progress(
        application: application, user: user, entry: content.entry, variants: content.variants)
      nextPage(slot)
    }
  }

  /// A request has failed: what its page holds is free.
  func leave(_ slot: Flow.Slot) { paging.leave(&inFlight[slot]) }

  // MARK: Pages

  /// Whether requests wait for their turn.
  var isWaiting: Bool { paging.isWaiting }

  /// Whether so much waits for Kafka that no page should be asked for.
  private var isBusy: Bool { outcomes.isBusy || journal?.isBusy == true }

  /// Asks for the next page of devices, or waits until it may.
  private func nextPage(_ slot: Flow.Slot) {
    inFlight.expect(slot)
    if paging.mayAsk(slot, inFlight[slot].recipients, isBusy: isBusy) { ask(slot) }
  }

  /// Asks for the pages of those who waited, as far as there is room now.
  ///
  /// A connection that is gone fails a page while it is asked for, and so comes here again: the next one is then asked for by the loop below,
  /// and not inside the failure of the one before, for thousands may wait.
  func askWaiting() {
    guard !isAsking else { return }
    isAsking = true
    while paging.isWaiting, !isBusy, let slot = paging.next() { ask(slot) }
    isAsking = false
  }

  private func ask(_ slot: Flow.Slot) {
    guard let progress = inFlight[slot].recipients else { preconditionFailure("only a request for a person asks for its devices") }
    inFlight[slot].batch.arena.bytes.withUnsafeBytes { arena in
      recipients.page(user: arena[progress.user], application: arena[progress.application], after: arena[progress.last]) { [self] answer in
        paging.came()
        switch answer {
        case .success(let page): came(page, slot)
        case .failure(let error): inFlight.failed(slot, error.about(key(slot, progress)))
        }
        askWaiting()
      }
    }
  }

  /// What operators find a person's devices under.
  private func key(_ slot: Flow.Slot, _ progress: RecipientPaging.Progress) -> String {
    inFlight[slot].batch.arena.bytes.withUnsafeBytes { arena in
      recipients.name(user: arena[progress.user], application: arena[progress.application])
    }
  }

  private func came(_ page: Recipients.Page, _ slot: Flow.Slot) {
    var (tokens, others) = paging.take(page, &inFlight[slot])
    if let journaled { tokens = kept(of: tokens, slot, journaled) }
    guard let progress = inFlight[slot].recipients else { return inFlight.fail(slot) }
    if !others.isEmpty { remove(others, slot, progress) }
    if let variants = progress.variants, variants.usesLocale, !tokens.isEmpty {
      askLocales(of: tokens, slot, variants)
    } else if let variants = progress.variants {
      judgeVariants(slot, tokens.map { ($0, nil) }, variants)
    } else {
      let arena = inFlight[slot].batch.arena
      for token in tokens { judge.take(slot, arena, token, progress.entry) }
      judge.send()
    }
    goOn(slot)
    inFlight.answered(slot)
  }

  /// The devices of a page whose mailboxes the request came to; at the others it counts as judged.
  private func kept(of tokens: [ArenaSpan], _ slot: Flow.Slot, _ journaled: JournaledVerdicts) -> [ArenaSpan] {
    let (ticket, arena) = (inFlight[slot].ticket, inFlight[slot].batch.arena)
    return tokens.filter { token in
      guard arena.bytes.withUnsafeBytes({ journaled.verdict(on: ticket, at: $0[token]) }) == .notKept else { return true }
      paging.judged(&inFlight[slot], token, JournalJudgement(.duplicate, revision: inFlight[slot].source.impliedRevision))
      return false
    }
  }

  /// Has the request judged for devices of a page when it is known which of its variants each gets.
  private func askLocales(of tokens: [ArenaSpan], _ slot: Flow.Slot, _ variants: ContentVariants) {
    inFlight.expect(slot)
    let arena = inFlight[slot].batch.arena
    locales.read(tokens.map { ($0, arena) }) { [self] answer in
      switch answer {
      case .success(let locales):
        judgeVariants(slot, zip(tokens, locales).map { ($0, $1) }, variants)
        inFlight.answered(slot)
      case .failure(let error): inFlight.failed(slot, error)
      }
    }
  }

  private func judgeVariants(_ slot: Flow.Slot, _ devices: [ContentVariants.Device], _ variants: ContentVariants) {
    let entries = devices.map { device in variants.content(for: device) { inFlight.passed(slot, $0) }.entry }
    paging.holds(entries, &inFlight[slot])
    let arena = inFlight[slot].batch.arena
    for (device, entry) in zip(devices, entries) { judge.take(slot, arena, device.token, entry) }
    judge.send()
  }

  /// What is no device's token was put among a person's devices by somebody else.
  private func remove(_ members: [ArenaSpan], _ slot: Flow.Slot, _ progress: RecipientPaging.Progress) {
    metrics.unreadableRecipients.increment(by: members.count)
    inFlight[slot].batch.arena.bytes.withUnsafeBytes { arena in
      let (user, application) = (arena[progress.user], arena[progress.application])
      logger.warning(
        "what is no device token is removed from a person's devices",
        ["set": recipients.name(user: user, application: application), "members": members.count])
      recipients.remove(members.map { arena[$0] }, user: user, application: application)
    }
  }

  // MARK: Verdicts

  /// A request was judged at one of its person's devices.
  func judged(_ slot: Flow.Slot, _ token: ArenaSpan, _ judgement: JournalJudgement) {
    paging.judged(&inFlight[slot], token, judgement)
    goOn(slot)
  }

  /// One device of the page was judged, or there was none: the next page, or the sum.
  private func goOn(_ slot: Flow.Slot) {
    guard !inFlight.flow.hasFailed(slot) else { return }
    if paging.isJudged(inFlight[slot]) { journalPage(slot) }
    switch paging.step(&inFlight[slot]) {
    case .wait: break
    case .next: nextPage(slot)
    case .end: end(slot)
    }
  }

  private func end(_ slot: Flow.Slot) {
    guard let devices = inFlight[slot].recipients?.devices else { return }
    inFlight[slot].verdict = devices == 0 ? .unregistered : .addressed
    reader.readAccepted(slot, inFlight) { view in
      inFlight.settle(slot, outcomes.addressed(view, devices: devices, slot: slot))
    }
  }

  /// Notes the verdicts on a page of a person's devices; the last page has the sum of all.
  private func journalPage(_ slot: Flow.Slot) {
    guard let journal, let progress = inFlight[slot].recipients else { return }
    let arena = inFlight[slot].batch.arena
    journal.append(inFlight[slot].source, count: progress.page.count, closing: progress.isComplete ? progress.closing : nil) {
      number, then in
      let device = progress.page[number]
      arena.bytes.withUnsafeBytes { then($0[device.token], device.judgement) }
    }
  }
}
