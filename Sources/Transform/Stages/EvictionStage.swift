import Notifications
import Store
import Worker

/// Deletes the oldest entries of full mailboxes, and those that a removal of all cancels, page by page, when Kafka has their events.
final class EvictionStage {
  private let errors: StoreErrors
  private let mailboxes: Mailboxes
  private let outcomes: Outcomes
  private let metrics: TransformMetrics
  private let logger: Logger
  private var evictions = Evictions()
  /// Whether the last call to Redis failed. The next answer of Redis resets it.
  private var hasFailed = false
  /// How many entries a mailbox keeps.
  private let bounds: MailboxBounds

  init(
    _ mailboxes: Mailboxes, _ bounds: MailboxBounds, _ errors: StoreErrors, _ outcomes: Outcomes, metrics: TransformMetrics, logger: Logger
  ) {
    (self.mailboxes, self.bounds, self.errors, self.outcomes) = (mailboxes, bounds, errors, outcomes)
    (self.metrics, self.logger) = (metrics, logger)
  }

  /// Entries of a device's mailbox have to end: begins by reading which. Further requests find an overflow until it has ended.
  func found(_ token: UnsafeRawBufferPointer, _ ending: Evictions.Ending) {
    // A rebuild has no events, and without its event no entry ends.
    guard !outcomes.isSilent else { return }
    hasFailed = false
    if let number = evictions.begin(token, ending) { delete([], of: String(decoding: token, as: UTF8.self), number, ending) }
    beginWaiting()
  }

  /// Begins the cancellations that wait, as many as there is room for.
  private func beginWaiting() {
    while !hasFailed, let (number, device, ending) = evictions.next() {
      delete([], of: String(decoding: device, as: UTF8.self), number, ending)
    }
  }

  /// Begins to end entries of a device's mailbox.
  private func begin(_ token: UnsafeRawBufferPointer, _ overflow: MailboxEntries, _ ending: Evictions.Ending) {
    let unreadable = evictions.begin(token, overflow, ending) { number, revision, entry in
      let subject = Outcomes.Subject(token: token, entry: entry, purpose: OutcomePurpose(.eviction, UInt32(number)))
      switch ending {
      case .evicted:
        metrics.evicted.increment()
        return outcomes.ended(.evicted, subject, revision: revision)
      case .canceled(let removal):
        metrics.canceled.increment()
        return outcomes.ended(.canceled, subject, revision: revision, by: removal)
      }
    }
    guard !unreadable.isEmpty else { return }
    let device = String(decoding: token, as: UTF8.self)
    metrics.unreadableEntries.increment(by: unreadable.count)
    logger.warning(
      "unreadable fields of a mailbox are removed", ["mailbox": mailboxes.name(of: device), "fields": unreadable.count])
    mailboxes.remove(unreadable: unreadable, of: device) { _ in }
  }

  /// The event of an eviction's entry is in Kafka, or is not; after the last one the entries are deleted.
  func reported(_ number: Int, failed: Bool) {
    guard let eviction = evictions.reported(number, failed: failed) else { return beginWaiting() }
    delete(eviction.revisions, of: String(decoding: eviction.token, as: UTF8.self), number, eviction.ending)
  }

  private func delete(_ revisions: [Revision], of token: String, _ number: Int, _ ending: Evictions.Ending) {
    switch ending {
    case .evicted: mailboxes.evict(revisions, of: token, bounds: bounds) { [self] answer in deleted(number, ending, answer) }
    case .canceled: mailboxes.cancel(revisions, of: token) { [self] answer in deleted(number, ending, answer) }
    }
  }

  /// An eviction's entries are deleted. The rest comes next.
  private func deleted(_ number: Int, _ ending: Evictions.Ending, _ answer: Result<MailboxEntries, StoreError>) {
    guard let token = evictions.ended(number) else { return }
    switch answer {
    case .success(let overflow):
      hasFailed = false
      // First, since an overflow that finds no place now is found again.
      beginWaiting()
      // A newer removal may have come meanwhile, and what stands between the two is canceled by that one.
      let ending = overflow.floor.map { .canceled(by: $0.id) } ?? ending
      token.withUnsafeBytes { begin($0, overflow, ending) }
    case .failure(let error):
      hasFailed = true
      // Redis has not looked at it.
      if error.code == .unavailable || error.code == .overloaded { evictions.wait(token, ending) }
      errors.tell(error)
    }
  }
}
