import Notifications
import Store

/// Notifications that have ended according to events, until they are removed from the mailboxes.
final class Endings {
  /// A notification that has ended at a device.
  private struct Ending {
    let time: Int64
    let device: String
    let revision: Revision
    let id: NotificationID
    /// The device has the notification, so the mailbox must not keep it under any revision.
    let isTaken: Bool
  }

  private let mailboxes: Mailboxes
  private let verdicts: JournaledVerdicts
  private var endings: [Ending] = []
  /// Deletions that Redis has not answered.
  private(set) var deletions = 0
  /// Called when Redis has answered a deletion.
  var onAnswer: (StoreError?) -> Void = { _ in }

  /// How many entries of a mailbox one call reads.
  private static let pageEntries = 256

  init(_ mailboxes: Mailboxes, _ verdicts: JournaledVerdicts) { (self.mailboxes, self.verdicts) = (mailboxes, verdicts) }

  /// How many endings wait for their requests.
  var count: Int { endings.count }

  /// The earliest time of a waiting ending; `max` if none waits.
  private(set) var earliest = Int64.max

  /// Notes the ending in an event; false if the event ends nothing.
  ///
  /// - Parameter time: of the event's record.
  func take(_ event: Event, at time: Int64) -> Bool {
    guard let type = event.type, let id = event.id, let device = event.device, let revision = event.revision else { return false }
    if type == .duplicate { verdicts.foundRepeat(of: id.windowHash, at: device) }
    guard type.endsMailboxEntry else { return false }
    endings.append(Ending(time: time, device: device, revision: revision, id: id, isTaken: type.isTaken))
    earliest = min(earliest, time)
    return true
  }

  /// Removes entries from the mailboxes that have ended up to a time.
  ///
  /// - Parameter maximum: of concurrent deletions; the others wait for the next call.
  func apply(through time: Int64, maximum: Int) {
    guard earliest <= time else { return }
    var kept: [Ending] = []
    earliest = .max
    for ending in endings {
      if ending.time <= time, deletions < maximum {
        delete(ending)
      } else {
        kept.append(ending)
        earliest = min(earliest, ending.time)
      }
    }
    endings = kept
  }

  private func delete(_ ending: Ending) {
    begin { mailboxes.delete(ending.revision, ofRequest: ending.id, of: ending.device, $0) }
    if ending.isTaken, verdicts.mayRepeat(ending.id.windowHash, at: ending.device) { deleteOthers(ending, skipping: 0) }
  }

  /// Deletes entries of the same apns-id, which the mailbox has under other revisions.
  private func deleteOthers(_ ending: Ending, skipping skipped: Int) {
    deletions += 1
    mailboxes.page(of: ending.device, count: Self.pageEntries, skipping: skipped) { [self] answer in
      guard case .success(let entries) = answer else { return answered(answer.error) }
      var others: [Revision] = []
      _ = entries.forEach { revision, entry, _ in if entry.id == ending.id { others.append(revision) } }
      if !others.isEmpty { begin { mailboxes.delete(others, of: ending.device, $0) } }
      if entries.count == Self.pageEntries { deleteOthers(ending, skipping: skipped + entries.count - others.count) }
      answered(nil)
    }
  }

  private func begin(_ delete: (@escaping (StoreError?) -> Void) -> Void) {
    deletions += 1
    delete { [self] in answered($0) }
  }

  private func answered(_ error: StoreError?) {
    deletions -= 1
    onAnswer(error)
  }
}

extension Result {
  fileprivate var error: Failure? { if case .failure(let error) = self { error } else { nil } }
}
