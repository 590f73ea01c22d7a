/// The outcome of a request, of a request at a device, or of a device.
///
/// This is the only list. The judge, the journal, the events, the metrics and the tools use these cases. No switch over them has a
/// `default`, and `Deploy/check-outcomes` checks that. So the compiler names each place that a new case affects.
public enum Outcome: Int, Sendable, CaseIterable {
  // MARK: Of a request at a device, and final

  /// The device has the notification.
  case delivered
  /// The device has the notification, in place of an older one with the same identifier.
  case updated
  /// The device acknowledged a removal. It may have had nothing to remove.
  case removed
  /// A newer request with the same identifier replaced it.
  case collapsed
  /// It expired before the device had it.
  case expired
  /// The device's mailbox overflowed, and it was the oldest entry.
  case evicted
  /// The application, the device or its settings excluded it.
  case filtered
  /// The device has had the same apns-id from another record.
  case duplicate
  /// The device is not registered, or no longer.
  case unregistered
  /// A removal of all notifications or a cancel came before the device had it.
  case canceled
  /// It breaks a rule, and became a dead letter.
  case rejected
  /// The device is registered for another application. Its event is `rejected`.
  case wrongApplication
  /// It could not be processed, and became a dead letter. Its event is `rejected`.
  case deadLettered
  /// The device belongs to another person now, or did when the request was published.
  case wrongUser

  // MARK: Of a request, and not final

  /// It was replayed, and all its outcomes are durable since the first time. Nothing was done now.
  case replayed
  /// The record could not be read as a request.
  case unreadable
  /// Its entry is in the device's mailbox.
  case queued
  /// It is scheduled for a time.
  case scheduled
  /// It canceled pending requests, each of which has its own event.
  case carriedOut
  /// It has a number of recipients.
  case addressed

  // MARK: Of people

  /// The person opened the notification, chose an action, or typed a text.
  case response
  /// The person dismissed the notification.
  case dismissed

  // MARK: Of a device

  /// A device registered, for the first time or with changes.
  case registered
  /// The person or the application changed the device's settings or categories.
  case settingsChanged
  /// A device unregistered: the person signed out, or the application was removed.
  case unregisteredDevice
}

// MARK: Events

extension Outcome {
  /// The CloudEvents type, `ce_type`; nil for an outcome without an event.
  public var cloudEventsType: StaticString? {
    switch self {
    case .delivered: "carillon.delivered.v1"
    case .updated: "carillon.updated.v1"
    case .removed: "carillon.removed.v1"
    case .collapsed: "carillon.collapsed.v1"
    case .expired: "carillon.expired.v1"
    case .evicted: "carillon.evicted.v1"
    case .filtered: "carillon.filtered.v1"
    case .duplicate: "carillon.duplicate.v1"
    case .unregistered: "carillon.unregistered.v1"
    case .canceled: "carillon.canceled.v1"
    case .rejected: "carillon.rejected.v1"
    case .wrongApplication, .deadLettered, .wrongUser, .queued, .scheduled, .carriedOut, .replayed, .unreadable: nil
    case .addressed: "carillon.addressed.v1"
    case .response: "carillon.response.v1"
    case .dismissed: "carillon.dismissed.v1"
    case .registered: "carillon.registered.v1"
    case .settingsChanged: "carillon.settings-changed.v1"
    case .unregisteredDevice: "carillon.unregistered-device.v1"
    }
  }

  /// The outcomes that have an event.
  public static let events = allCases.filter { $0.cloudEventsType != nil }

  /// The name in events or in `explain`.
  ///
  /// For an event it is the middle of its type, `carillon.<name>.v1`. Else it is the word of `explain` for the journal's verdict.
  public var name: String {
    switch self {
    case .wrongApplication: "wrong application"
    case .deadLettered: "dead-lettered"
    case .wrongUser: "left out"
    case .queued: "queued"
    case .scheduled: "scheduled"
    case .carriedOut: "carried out"
    case .replayed: "applied before"
    case .unreadable: "passed over as unreadable"
    case .delivered, .updated, .removed, .collapsed, .expired, .evicted, .filtered, .duplicate, .unregistered, .canceled, .rejected,
      .addressed,
      .response, .dismissed, .registered, .settingsChanged, .unregisteredDevice:
      String((cloudEventsType?.description ?? "").dropFirst("carillon.".count).dropLast(".v1".count))
    }
  }

  /// Finds the outcome of an event's name.
  public init?(name: String) {
    guard let type = Self.events.first(where: { $0.name == name }) else { return nil }
    self = type
  }

  /// Finds the outcome of a `ce_type`.
  public init?(cloudEventsType name: String) {
    guard let type = Self.events.first(where: { $0.cloudEventsType?.description == name }) else { return nil }
    self = type
  }

  /// Whether it is about a device, and not about a request.
  public var isAboutDevice: Bool {
    switch self {
    case .registered, .settingsChanged, .unregisteredDevice: true
    case .delivered, .updated, .removed, .collapsed, .expired, .evicted, .filtered, .duplicate, .unregistered, .canceled, .rejected,
      .wrongApplication, .deadLettered, .wrongUser, .queued, .scheduled, .carriedOut, .addressed, .replayed, .unreadable, .response,
      .dismissed:
      false
    }
  }
}

// MARK: The journal and the metrics

extension Outcome {
  /// The verdict's byte in the journal; nil for an outcome that is no verdict.
  ///
  /// It takes four bits, and 15 is a run. Never renumber.
  public var journalByte: UInt8? {
    switch self {
    case .queued: 0
    case .expired: 1
    case .collapsed: 2
    case .duplicate: 3
    case .unregistered: 4
    case .wrongUser: 5
    case .wrongApplication: 6
    case .filtered: 7
    case .rejected: 8
    case .deadLettered: 9
    case .scheduled: 10
    case .unreadable: 11
    case .replayed: 12
    case .canceled: 13
    case .carriedOut: 14
    case .delivered, .updated, .removed, .evicted, .addressed, .response, .dismissed, .registered, .settingsChanged,
      .unregisteredDevice:
      nil
    }
  }

  /// Finds the verdict of a byte in the journal.
  public init?(journalByte byte: UInt8) {
    guard byte < Self.verdicts.count, let verdict = Self.verdicts[Int(byte)] else { return nil }
    self = verdict
  }

  private static let verdicts = (0...JournalLayout.verdictMask).map { byte in allCases.first { $0.journalByte == byte } }

  /// The event that the transform stage emits for this verdict; nil for none.
  public var event: Outcome? {
    switch self {
    case .queued, .scheduled, .carriedOut, .wrongUser, .replayed, .unreadable: nil
    case .wrongApplication, .deadLettered: .rejected
    case .delivered, .updated, .removed, .collapsed, .expired, .evicted, .filtered, .duplicate, .unregistered, .canceled, .rejected,
      .addressed,
      .response, .dismissed, .registered, .settingsChanged, .unregisteredDevice:
      self
    }
  }

  /// The word in the metric of requests; nil for outcomes that it does not count.
  public var requestLabel: String? {
    switch self {
    case .queued: "queued"
    case .expired: "expired"
    case .collapsed: "collapsed"
    case .duplicate: "duplicate"
    case .addressed: "addressed"
    case .unregistered: "unregistered"
    case .rejected, .wrongApplication: "rejected"
    case .filtered: "filtered"
    case .replayed: "replayed"
    case .deadLettered: "poison"
    case .canceled: "canceled"
    case .scheduled: "scheduled"
    case .carriedOut: "carried_out"
    case .delivered, .updated, .removed, .evicted, .wrongUser, .unreadable, .response, .dismissed, .registered,
      .settingsChanged, .unregisteredDevice:
      nil
    }
  }

  /// The word in the metric of the judge's verdicts; nil for other outcomes.
  public var deviceLabel: String? {
    switch self {
    case .queued: "queued"
    case .expired: "expired"
    case .collapsed: "collapsed"
    case .duplicate: "duplicate"
    case .unregistered: "unregistered"
    case .wrongUser: "other_user"
    case .wrongApplication: "wrong_application"
    case .canceled: "canceled"
    case .delivered, .updated, .removed, .evicted, .filtered, .rejected, .deadLettered, .scheduled, .carriedOut, .addressed,
      .replayed, .unreadable, .response, .dismissed, .registered, .settingsChanged, .unregisteredDevice:
      nil
    }
  }
}

// MARK: At a device

extension Outcome {
  /// The final outcome at a device that this implies; nil if it implies none.
  public var finalOutcome: Outcome? {
    switch self {
    case .delivered, .updated, .removed, .collapsed, .expired, .evicted, .filtered, .duplicate, .unregistered, .canceled, .rejected,
      .wrongUser:
      self
    // The acknowledgement may be lost with its session. A person who responds has seen the notification.
    case .response, .dismissed: .delivered
    case .wrongApplication, .deadLettered: .rejected
    case .queued, .scheduled, .carriedOut, .addressed, .replayed, .unreadable, .registered, .settingsChanged, .unregisteredDevice: nil
    }
  }

  /// The weight among a request's outcomes at a device; nil if it is none.
  ///
  /// The highest weight counts. A statement of the device outweighs the other final outcomes, and these outweigh a delivery that is still
  /// to come. A duplicate weighs least, since another record of the same id decides.
  public var weight: Int? {
    switch self {
    case .updated: 13
    case .delivered: 12
    case .removed: 11
    case .response, .dismissed: 10
    case .expired: 9
    case .evicted: 8
    case .collapsed: 7
    case .filtered: 6
    case .unregistered: 5
    case .canceled: 4
    case .rejected, .wrongApplication, .deadLettered: 3
    case .queued, .scheduled: 2
    case .duplicate, .wrongUser: 1
    case .addressed, .carriedOut, .replayed, .unreadable, .registered, .settingsChanged, .unregisteredDevice: nil
    }
  }

  /// Returns the outcome with the highest weight; the first of equals.
  public static func weightiest(of outcomes: some Sequence<Outcome>) -> Outcome? {
    var found: (outcome: Outcome, weight: Int)?
    for outcome in outcomes {
      if let weight = outcome.weight, weight > found?.weight ?? 0 { found = (outcome, weight) }
    }
    return found?.outcome
  }

  /// Whether the notification has left its device's mailbox.
  public var endsMailboxEntry: Bool {
    switch self {
    case .delivered, .updated, .removed, .collapsed, .filtered, .expired, .evicted, .unregistered, .canceled, .rejected: true
    case .duplicate, .wrongApplication, .deadLettered, .wrongUser, .queued, .scheduled, .carriedOut, .addressed, .replayed, .unreadable,
      .response,
      .dismissed, .registered, .settingsChanged, .unregisteredDevice:
      false
    }
  }

  /// Whether the judge put the request into the mailbox, or would have before its expiration.
  public var wasKept: Bool {
    switch self {
    case .queued, .expired: true
    case .delivered, .updated, .removed, .collapsed, .evicted, .filtered, .duplicate, .unregistered, .canceled, .rejected,
      .wrongApplication,
      .deadLettered, .wrongUser, .scheduled, .carriedOut, .addressed, .replayed, .unreadable, .response, .dismissed, .registered,
      .settingsChanged,
      .unregisteredDevice:
      false
    }
  }

  /// Whether the device has acknowledged the notification.
  public var isTaken: Bool {
    switch self {
    case .delivered, .updated, .removed: true
    case .collapsed, .expired, .evicted, .filtered, .duplicate, .unregistered, .canceled, .rejected, .wrongApplication, .deadLettered,
      .wrongUser, .queued, .scheduled, .carriedOut, .addressed, .replayed, .unreadable, .response, .dismissed, .registered,
      .settingsChanged,
      .unregisteredDevice:
      false
    }
  }

  /// Whether a person did it.
  public var isByPerson: Bool { self == .response || self == .dismissed }
}
