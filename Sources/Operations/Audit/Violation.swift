package import Notifications

/// A broken guarantee.
package struct Violation: Sendable, Hashable {
  /// The kinds of violations, by the words of the JSON.
  package enum Kind: String, Sendable, CaseIterable {
    /// A request, or a device of its recipients, has no outcome.
    case lost
    /// The request has an outcome but no journal entry: its offset was committed too early.
    case unjournaled
    /// The device acknowledged later requests for longer than a takeover takes, but never this one.
    case overlooked
    /// Another request with a foreign origin replaced it in the mailbox.
    ///
    /// The device never gets it.
    case overwritten
    /// The request is in its device's mailbox, which the caller forbids.
    case pending
    /// The outcomes exclude each other.
    case contradiction
    /// The event is of a device that the request does not name.
    case wrongDevice
    /// The event is about a request that is not in the topic.
    case unknownRequest
    /// One device showed the same apns-id twice.
    case shownTwice
    /// The device acknowledged it so long after its end that it was shown late.
    case shownLate
    /// The notification was declared expired before its end.
    case expiredEarly
    /// A revision was shown after a newer one of the same identifier.
    case stale
    /// The request was declared collapsed, but there is nothing newer.
    case collapsedByNothing
    /// The device dropped the request as older than a removal of all, but there is no such removal.
    case canceledByNothing
    /// The request was declared a duplicate, but there is no other record.
    case duplicateOfNothing
    /// The device was declared unregistered, but was registered before and afterwards.
    case wronglyUnregistered
    /// The request was rejected as beyond a rate limit, and was within it.
    case rejectedWithinLimit
    /// The request was beyond a rate limit of its application, and was not rejected for that.
    case passedBeyondLimit
    /// The same response of the person has two events.
    case responseTwice
    /// An occurrence of a schedule fired before it was due.
    case firedEarly
    /// An occurrence of a schedule fired twice.
    case firedTwice
    /// An occurrence fired after its schedule had been replaced, canceled or evicted.
    case firedAfterEnd
    /// An occurrence fired, but the previous one neither fired nor was skipped.
    case occurrenceMissing

    /// The kind as a sentence.
    package var sentence: String {
      switch self {
      case .lost: "the request has no outcome"
      case .unjournaled: "the journal does not say how the request was judged"
      case .overlooked: "the device got newer ones and never this one"
      case .overwritten: "another request took its place in the mailbox"
      case .pending: "it still waits for its device"
      case .contradiction: "its outcomes exclude each other"
      case .wrongDevice: "it reached a device that it does not name"
      case .unknownRequest: "the event names a request that is not there"
      case .shownTwice: "the device showed it twice"
      case .shownLate: "it was shown after its end"
      case .expiredEarly: "it was declared expired before its end"
      case .stale: "it was shown after a newer one of the same identifier"
      case .collapsedByNothing: "it was declared collapsed, and there is nothing newer"
      case .canceledByNothing: "the device dropped it for a removal of all, and there is none that is newer"
      case .duplicateOfNothing: "it was declared a duplicate, and there is no other"
      case .wronglyUnregistered: "its device was declared unregistered, and is registered"
      case .rejectedWithinLimit: "it was rejected as beyond a rate limit, and was within it"
      case .passedBeyondLimit: "it was beyond a rate limit, and was not rejected for that"
      case .responseTwice: "the same response arrived twice"
      case .firedEarly: "the occurrence fired before it was due"
      case .firedTwice: "the occurrence fired twice"
      case .firedAfterEnd: "the occurrence fired after its schedule had ended"
      case .occurrenceMissing: "an occurrence of the schedule is missing before this one"
      }
    }
  }

  /// A record of the violation.
  package struct Place: Sendable, Hashable {
    /// The topics that records are read from.
    package enum Topic: Sendable, Hashable {
      /// The requests.
      case requests
      /// The journal.
      case journal
      /// The events.
      case events
      /// The dead letters.
      case deadLetters
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

  init(_ kind: Kind, _ id: NotificationID, _ detail: String = "", _ facts: some Sequence<AuditFact>) {
    self.kind = kind
    self.id = id
    self.detail = detail
    places = []
    for fact in facts where places.count < Self.maximumPlaces {
      add(Place(topic: fact.topic, partition: fact.partition, offset: fact.offset))
      if fact.kind == .request { add(Place(topic: .journal, partition: fact.partition, offset: Int64(clamping: fact.statement) - 1)) }
    }
  }

  init(_ kind: Kind, _ id: NotificationID, _ detail: String, _ places: some Sequence<Place>) {
    (self.kind, self.id, self.detail, self.places) = (kind, id, detail, [])
    for place in places where self.places.count < Self.maximumPlaces { add(place) }
  }

  private mutating func add(_ place: Place) {
    if place.offset >= 0, !places.contains(place) { places.append(place) }
  }
}

extension AuditFact {
  fileprivate var topic: Violation.Place.Topic {
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
