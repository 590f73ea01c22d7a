package import Notifications

/// A broken guarantee.
package struct Violation: Sendable, Hashable {
  /// The kinds of violations, each as a sentence.
  package enum Kind: String, Sendable, CaseIterable {
    /// A request, or a device of its recipients, has no outcome.
    case lost = "the request has no outcome"
    /// The request has an outcome but no journal entry: its offset was committed too early.
    case unjournaled = "the journal does not say how the request was judged"
    /// The device acknowledged later requests for longer than a takeover takes, but never this one.
    case overlooked = "the device got newer ones and never this one"
    /// Another request with a foreign origin replaced it in the mailbox.
    ///
    /// The device never gets it.
    case overwritten = "another request took its place in the mailbox"
    /// The request is in its device's mailbox, which the caller forbids.
    case pending = "it still waits for its device"
    /// The outcomes exclude each other.
    case contradiction = "its outcomes exclude each other"
    /// The event is of a device that the request does not name.
    case wrongDevice = "it reached a device that it does not name"
    /// The event is about a request that is not in the topic.
    case unknownRequest = "the event names a request that is not there"
    /// One device showed the same apns-id twice.
    case shownTwice = "the device showed it twice"
    /// The device acknowledged it so long after its end that it was shown late.
    case shownLate = "it was shown after its end"
    /// The notification was declared expired before its end.
    case expiredEarly = "it was declared expired before its end"
    /// A revision was shown after a newer one of the same identifier.
    case stale = "it was shown after a newer one of the same identifier"
    /// The request was declared collapsed, but there is nothing newer.
    case collapsedByNothing = "it was declared collapsed, and there is nothing newer"
    /// The device dropped the request as older than a removal of all, but there is no such removal.
    case canceledByNothing = "the device dropped it for a removal of all, and there is none that is newer"
    /// The request was declared a duplicate, but there is no other record.
    case duplicateOfNothing = "it was declared a duplicate, and there is no other"
    /// The device was declared unregistered, but was registered before and afterwards.
    case wronglyUnregistered = "its device was declared unregistered, and is registered"
    /// The request was rejected as beyond a rate limit, and was within it.
    case rejectedWithinLimit = "it was rejected as beyond a rate limit, and was within it"
    /// The request was beyond a rate limit of its application, and was not rejected for that.
    case passedBeyondLimit = "it was beyond a rate limit, and was not rejected for that"
    /// The same response of the person has two events.
    case responseTwice = "the same response arrived twice"
    /// An occurrence of a schedule fired before it was due.
    case firedEarly = "the occurrence fired before it was due"
    /// An occurrence of a schedule fired twice.
    case firedTwice = "the occurrence fired twice"
    /// An occurrence fired after its schedule had been replaced, canceled or evicted.
    case firedAfterEnd = "the occurrence fired after its schedule had ended"
    /// An occurrence fired, but the previous one neither fired nor was skipped.
    case occurrenceMissing = "an occurrence of the schedule is missing before this one"

    /// Its name in the JSON.
    package var name: String { "\(self)" }
  }

  /// A record of the violation.
  package struct Place: Sendable, Hashable {
    /// The topics that records are read from, by their names without the prefix.
    package enum Topic: String, Sendable, Hashable {
      /// The requests.
      case requests
      /// The journal.
      case journal
      /// The events.
      case events
      /// The dead letters.
      case deadLetters = "dead-letters"
    }

    /// The topic.
    package var topic: Topic
    /// The partition.
    package var partition: Int32
    /// The offset.
    package var offset: Int64
  }

  /// The kind.
  package var kind: Kind
  /// The request.
  package var id: NotificationID
  /// The finding in words.
  package var detail: String
  /// The records that prove it.
  package var places: [Place]

  /// The maximum number of records of one violation.
  static let maximumPlaces = 64
}

extension AuditFact {
  /// Its record.
  var place: Violation.Place { Violation.Place(topic: topic, partition: partition, offset: offset) }

  private var topic: Violation.Place.Topic {
    switch kind {
    case .request: .requests
    case .deadLetter: .deadLetters
    // The journal has the entry of an open request.
    case .judged, .page, .closing, .open: .journal
    case .told(let outcome): outcome.event == nil ? .journal : .events
    case .refused: .events
    }
  }
}
