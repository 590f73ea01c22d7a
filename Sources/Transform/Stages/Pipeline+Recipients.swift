import Notifications
import Store
import Worker

/// The devices of the persons whom requests are for, a page at a time.
extension Pipeline {
  /// Asks for the next page of devices, or waits until it may.
  func nextPage(_ slot: Flow.Slot) {
    flow.expect(1, of: slot)
    if paging.mayAsk(slot, records[slot].recipients, isBusy: outcomes.isBusy) { ask(slot) }
  }

  /// Asks for the pages of those who waited, as far as there is room now.
  func askWaiting() {
    while paging.isWaiting, !outcomes.isBusy, let slot = paging.next() { ask(slot) }
  }

  private func ask(_ slot: Flow.Slot) {
    guard let progress = records[slot].recipients else { preconditionFailure("only a request for a person asks for its devices") }
    records[slot].batch.arena.bytes.withUnsafeBytes { arena in
      recipients.page(user: arena[progress.user], application: arena[progress.application], after: arena[progress.last]) { [self] answer in
        paging.came()
        switch answer {
        case .success(let page): came(page, slot)
        case .failure(let error): failed(slot, error)
        }
        askWaiting()
      }
    }
  }

  private func came(_ page: Recipients.Page, _ slot: Flow.Slot) {
    let (tokens, others) = paging.take(page, &records[slot])
    guard let progress = records[slot].recipients else { return fail(slot) }
    if !others.isEmpty { remove(others, slot, progress) }
    for token in tokens { judge(slot, records[slot].batch.arena, token, progress.entry) }
    send()
    pageJudged(slot)
    finish(slot)
  }

  /// What is no device's token was put among a person's devices by somebody else.
  private func remove(_ members: [ArenaSpan], _ slot: Flow.Slot, _ progress: RecipientPaging.Progress) {
    metrics.unreadableRecipients.increment(by: members.count)
    records[slot].batch.arena.bytes.withUnsafeBytes { arena in
      let (user, application) = (arena[progress.user], arena[progress.application])
      logger.warning(
        "what is no device token is removed from a person's devices",
        ["set": recipients.name(user: user, application: application), "members": members.count])
      recipients.remove(members.map { arena[$0] }, user: user, application: application)
    }
  }

  /// One device of the page was judged, or there was none: the next page, or the sum.
  func pageJudged(_ slot: Flow.Slot) {
    guard !flow.hasFailed(slot) else { return }
    if paging.isJudged(records[slot]) { journalPage(slot) }
    switch paging.step(&records[slot]) {
    case .wait: break
    case .next: nextPage(slot)
    case .end:
      guard let devices = records[slot].recipients?.devices else { return }
      records[slot].verdict = devices == 0 ? .unregistered : .addressed
      reader.readAccepted(records[slot].record) { view in
        settle(slot, outcomes.addressed(view, devices: devices, token: slot))
      }
    }
  }

  /// Notes the verdicts on a page of a person's devices; the last page has the sum of all.
  private func journalPage(_ slot: Flow.Slot) {
    guard let journal, let progress = records[slot].recipients else { return }
    let (source, arena) = (source(slot, records[slot].record), records[slot].batch.arena)
    journal.append(source, count: progress.page.count, closing: progress.isComplete ? progress.closing : nil) { number, then in
      let device = progress.page[number]
      arena.bytes.withUnsafeBytes { then($0[device.token], device.judgement) }
    }
  }
}
