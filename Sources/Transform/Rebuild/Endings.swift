import Notifications
import Store

/// Notifications that have ended according to events, until they are removed from the mailboxes. Loop-confined.
final class Endings {
  /// A notification that has ended at a device.
  private struct Ending {
    let time: Int64
    let device: String
    let revision: Revision
    let id: NotificationID
  }

  private let mailboxes: Mailboxes
  private var endings: [Ending] = []
  /// Deletions that Redis has not answered.
  private(set) var deletions = 0
  /// Called when Redis has answered a deletion.
  var onAnswer: (StoreError?) -> Void = { _ in }

  init(_ mailboxes: Mailboxes) { self.mailboxes = mailboxes }

  /// How many endings wait for their requests.
  var count: Int { endings.count }

  /// The earliest time of a waiting ending; `max` if none waits.
  private(set) var earliest = Int64.max

  /// Notes the ending in an event; false if the event ends nothing.
  ///
  /// - Parameter time: of the event's record.
  func take(_ event: Event, at time: Int64) -> Bool {
    guard event.type?.endsMailboxEntry == true, let id = event.id, let device = event.device, let revision = event.revision else {
      return false
    }
    endings.append(Ending(time: time, device: device, revision: revision, id: id))
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
    deletions += 1
    mailboxes.delete(ending.revision, ofRequest: ending.id, of: ending.device) { [self] error in
      deletions -= 1
      onAnswer(error)
    }
  }
}
