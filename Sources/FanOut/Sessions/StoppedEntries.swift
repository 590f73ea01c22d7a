import Notifications
import Worker

/// What the sessions of a lane ask about stopped applications. Loop-confined.
///
/// An entry that was published before the end of a stop of its application, and was not sent to its device by then, is not sent any more.
/// A stop that goes on as far as the lane knows may have ended before the entry was published, so that is made sure of first; meanwhile the
/// entry has its number in its session.
final class StoppedEntries {
  private let applications: ApplicationsReader

  init(_ applications: ApplicationsReader) { self.applications = applications }

  /// The stop that ends an entry; nil where there is none. A removal takes something off a screen, and is always sent.
  func stop(of entry: DeliveryEntryView) -> ApplicationStop? {
    guard !applications.table.isEmpty, entry.kind == .notify else { return nil }
    return applications.table.stops(of: entry.application)?.ending(entry.published)
  }

  /// Tells a session when the stops are known to be all there were at the moment of this call, or cannot be known.
  func confirm(_ number: UInt64, of session: Session) {
    applications.confirm { session.open?.stopsConfirmed(number, isComplete: $0) }
  }
}
