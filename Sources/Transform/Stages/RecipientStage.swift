import Calendars
import Notifications
import Store

/// Has a request judged for each device that it is for. A person's devices come page by page.
final class RecipientStage {
  private let inFlight: InFlight
  private let errors: StoreErrors
  private let recipients: Recipients
  private let facts: DeviceFacts
  private let judge: JudgeStage
  private let reader: RequestReader
  private let outcomes: Outcomes
  private let journal: Journal?
  private let journaled: JournaledVerdicts?
  private var paging = RecipientPaging()
  private var isAsking = false
  private var times = DueTimes()
  weak var owner: Pipeline?

  /// - Parameters:
  ///   - journal: nil if verdicts are not written, as during a rebuild.
  ///   - journaled: the former verdicts, during a rebuild.
  init(
    _ recipients: Recipients, _ facts: DeviceFacts, _ inFlight: InFlight, _ errors: StoreErrors, _ judge: JudgeStage,
    _ reader: RequestReader, _ outcomes: Outcomes, journal: Journal?, journaled: JournaledVerdicts?
  ) {
    (self.recipients, self.facts, self.inFlight, self.errors, self.judge) = (recipients, facts, inFlight, errors, judge)
    (self.reader, self.outcomes, self.journal, self.journaled) = (reader, outcomes, journal, journaled)
  }

  /// Takes a request that is judged now.
  func take(_ slot: Slot, _ content: RequestContent) {
    note(content, of: slot)
    switch content.receiver {
    case .device(let token): judge.take(slot, content.arena, token, content.entry)
    case .set(let set):
      inFlight[slot].recipients = RecipientPaging.Progress(
        set, entry: content.entry, variants: content.variants, zone: content.zone, zones: content.schedule?.zones ?? [:])
      nextPage(slot)
    }
  }

  /// Notes the service extensions that a content has passed.
  private func note(_ content: RequestContent, of slot: Slot) {
    guard content.extensions.count > 0 else { return }
    // The payload may be much larger than the one that was published.
    inFlight[slot].batch.grew(by: content.entry.span.count + content.extensions.span.count)
    guard let journal else { return }
    let source = inFlight[slot].source
    content.arena.bytes.withUnsafeBytes { arena in
      journal.append(source) {
        $0.append(
          offset: source.offset, timestamp: source.timestamp, extensions: arena[content.extensions.span], count: content.extensions.count,
          now: $1)
      }
    }
  }

  /// A request has failed: it releases the room of its page.
  func leave(_ slot: Slot) { paging.leave(&inFlight[slot]) }

  // MARK: Pages

  /// Whether requests wait to ask for a page.
  var isWaiting: Bool { paging.isWaiting }

  /// Whether Kafka is so far behind that no page should be asked for.
  private var isBusy: Bool { outcomes.isBusy || journal?.isBusy == true }

  /// Asks for the next page of devices, or waits until it may.
  private func nextPage(_ slot: Slot) {
    inFlight.expect(1, of: slot)
    if paging.mayAsk(slot, inFlight[slot].recipients, isBusy: isBusy) { ask(slot) }
  }

  /// Asks for the pages that requests wait for, as far as there is room now.
  ///
  /// Without a connection a page fails while it is asked for, and this function is called again. Then the loop below asks for the next page,
  /// not the failure of the former: thousands may wait.
  func askWaiting() {
    guard !isAsking else { return }
    isAsking = true
    while paging.isWaiting, !isBusy, let slot = paging.next() { ask(slot) }
    isAsking = false
  }

  private func ask(_ slot: Slot) {
    guard let progress = inFlight[slot].recipients else { preconditionFailure("only a request for a person asks for its devices") }
    let arena = inFlight[slot].batch.arena
    arena.bytes.withUnsafeBytes { bytes in
      let isReplacing = progress.entry.mayReplace && progress.last.count == 0
      recipients.page(of: progress.set, in: bytes, after: bytes[progress.last], isReplacing: isReplacing) { [self] page in
        paging.came()
        let answer = inFlight.answer(slot)
        switch page {
        case .success(let page): inFlight.conclude(answer, came(page, slot))
        case .failure(let error):
          errors.failed(answer, error.about(arena.bytes.withUnsafeBytes { recipients.name(of: progress.set, in: $0) }))
        }
        askWaiting()
      }
    }
  }

  private func came(_ page: Recipients.Page, _ slot: Slot) -> Conclusion {
    if page.asksSchedules { return owner?.askSchedules(slot) ?? .failed }
    var tokens = paging.take(page, &inFlight[slot])
    if let journaled { tokens = kept(of: tokens, slot, journaled) }
    guard let progress = inFlight[slot].recipients else { return .failed }
    if let zone = progress.zone, !tokens.isEmpty { askZones(of: tokens, slot, zone, progress) } else { judge(tokens, slot, progress) }
    return goOn(slot)
  }

  /// Has the request judged for those devices of a page that are in a time zone. The others are left out: it is another time there.
  private func askZones(of tokens: [ArenaSpan], _ slot: Slot, _ zone: Name, _ progress: RecipientPaging.Progress) {
    let arena = inFlight[slot].batch.arena
    let known = arena.bytes.withUnsafeBytes { arena in tokens.compactMap { progress.zones[Name(arena[$0])] } }
    // A device that has registered since is not among them.
    if known.count == tokens.count { return judge(tokens, at: known, slot, zone, progress) }
    read(tokens, slot) { [self] devices in
      guard let progress = inFlight[slot].recipients else { return .failed }
      judge(tokens, at: devices.map { $0.zone ?? "" }, slot, zone, progress)
      return goOn(slot)
    }
  }

  /// Reads the facts about devices of a page.
  private func read(_ tokens: [ArenaSpan], _ slot: Slot, _ then: @escaping ([DeviceFacts.Device]) -> Conclusion) {
    inFlight.expect(1, of: slot)
    let arena = inFlight[slot].batch.arena
    facts.read(tokens.map { ($0, arena) }) { [self] devices in
      let answer = inFlight.answer(slot)
      switch devices {
      case .success(let devices): inFlight.conclude(answer, then(devices))
      case .failure(let error): errors.failed(answer, error)
      }
    }
  }

  private func judge(_ tokens: [ArenaSpan], at zones: [Name], _ slot: Slot, _ zone: Name, _ progress: RecipientPaging.Progress) {
    var there: [ArenaSpan] = []
    for (token, told) in zip(tokens, zones) {
      if (times.isZone(told) ? told : DueTimes.defaultZone) == zone {
        there.append(token)
      } else {
        paging.judged(&inFlight[slot], token, JournalJudgement(.wrongUser, revision: progress.entry.revision))
      }
    }
    judge(there, slot, progress)
  }

  /// Has the request judged for devices of a page.
  private func judge(_ tokens: [ArenaSpan], _ slot: Slot, _ progress: RecipientPaging.Progress) {
    if let variants = progress.variants, variants.usesLocale, !tokens.isEmpty {
      read(tokens, slot) { [self] devices in
        judgeVariants(slot, zip(tokens, devices).map { ($0, $1.locale) }, variants)
        return .done
      }
    } else if let variants = progress.variants {
      judgeVariants(slot, tokens.map { ($0, nil) }, variants)
    } else {
      let arena = inFlight[slot].batch.arena
      for token in tokens { judge.take(slot, arena, token, progress.entry.atDevice) }
      judge.send()
    }
  }

  /// The devices of a page whose mailboxes the request came to; at the others it counts as judged.
  private func kept(of tokens: [ArenaSpan], _ slot: Slot, _ journaled: JournaledVerdicts) -> [ArenaSpan] {
    let (ticket, arena) = (inFlight[slot].ticket, inFlight[slot].batch.arena)
    return tokens.filter { token in
      guard arena.bytes.withUnsafeBytes({ journaled.verdict(on: ticket, at: $0[token]) }) == .notKept else { return true }
      paging.judged(&inFlight[slot], token, JournalJudgement(.duplicate, revision: inFlight[slot].source.impliedRevision))
      return false
    }
  }

  private func judgeVariants(_ slot: Slot, _ devices: [ContentVariants.Device], _ variants: ContentVariants) {
    let entries = devices.map { device in variants.content(for: device) { note($0, of: slot) }.entry }
    paging.holds(entries, &inFlight[slot])
    let arena = inFlight[slot].batch.arena
    for (device, entry) in zip(devices, entries) { judge.take(slot, arena, device.token, entry.atDevice) }
    judge.send()
  }

  // MARK: Verdicts

  /// A request was judged at one of its person's devices.
  func judged(_ slot: Slot, _ token: ArenaSpan, _ judgement: JournalJudgement) -> Conclusion {
    paging.judged(&inFlight[slot], token, judgement)
    return goOn(slot)
  }

  /// Asks for the next page, or ends the request, when all devices of its page are judged.
  private func goOn(_ slot: Slot) -> Conclusion {
    guard !inFlight.hasFailed(slot) else { return .done }
    if paging.isJudged(inFlight[slot]) { journalPage(slot) }
    switch paging.step(&inFlight[slot]) {
    case .wait: break
    case .next: nextPage(slot)
    case .end: return end(slot)
    }
    return .done
  }

  private func end(_ slot: Slot) -> Conclusion {
    guard let devices = inFlight[slot].recipients?.devices else { return .done }
    inFlight[slot].verdict = .request(devices == 0 ? .unregistered : .addressed)
    return reader.readAccepted(inFlight[slot].record) { view in
      inFlight.emitted(slot, outcomes.addressed(view, devices: devices, slot: slot))
    }
  }

  /// Notes the verdicts on a page of a person's devices in the journal. The last page has the sum of all.
  private func journalPage(_ slot: Slot) {
    guard let journal, let progress = inFlight[slot].recipients else { return }
    let arena = inFlight[slot].batch.arena
    let source = inFlight[slot].source
    journal.append(source) { writer, now in
      writer.append(
        offset: source.offset, timestamp: source.timestamp, count: progress.page.count,
        closing: progress.isComplete ? progress.closing : nil, now: now
      ) { number, then in
        let device = progress.page[number]
        arena.bytes.withUnsafeBytes { then($0[device.token], device.judgement) }
      }
    }
  }
}

extension RequestEntry {
  /// The entry for one of the person's devices. The first page has told what waits for the person; what waits for the device is not replaced.
  fileprivate var atDevice: RequestEntry {
    var entry = self
    entry.mayReplace = false
    return entry
  }
}
