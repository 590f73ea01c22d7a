/// What can become of a request, of a request at a device, or of a device.
///
/// This is the one list. The judge, the journal, the events, the metrics and the tools all speak of these cases, and no switch over them has a
/// `default`: `Deploy/check-outcomes` says so. A new case is added here, and the compiler names each place that has to know it.
public enum Outcome: Int, Sendable, CaseIterable {
  // MARK: Of a request at a device, and final

  /// The device has it.
  case delivered
  /// The device has it, in place of an older one of the same identifier.
  case updated
  /// The device acknowledged a removal; it may have had nothing of what is removed.
  case removed
  /// A newer one of the same identifier takes its place.
  case collapsed
  /// Its time was over before the device had it.
  case expired
  /// The device's mailbox was full, and it was the oldest.
  case evicted
  /// The application, the device or its settings did not want it.
  case filtered
  /// The device has had this apns-id from another record.
  case duplicate
  /// The device is not registered, or not any more.
  case unregistered
  /// A removal of all notifications came before the device had it; or it was pending and is not any more.
  case canceled
  /// It breaks a rule; the dead letters have it.
  case rejected
  /// The device is registered for another application. Its event is `rejected`.
  case wrongApplication
  /// It could not be processed; the dead letters have it. Its event is `rejected`.
  case deadLettered
  /// The device belongs to somebody else by now, or belonged to somebody else when the request was published.
  case wrongUser

  // MARK: Of a request, and not final

  /// It comes again by a replay, and was applied before: all that it came to then is durable, and nothing was done now.
  case replayed
  /// The record's bytes are no request, and tell nothing of one.
  case unreadable
  /// It is in the device's mailbox.
  case queued
  /// It waits for its time.
  case scheduled
  /// It canceled what was pending, which has an event of its own.
  case carriedOut
  /// It is for so many devices.
  case addressed

  // MARK: What people did

  /// The person opened it, chose an action, or typed a text.
  case response
  /// The person dismissed it.
  case dismissed

  // MARK: Of a device

  /// A device said who it is, for the first time or differently.
  case registered
  /// The person or the application changed the device's settings or categories.
  case settingsChanged
  /// A device is gone: the person signed out, or the application was removed.
  case unregisteredDevice
}

// MARK: Events

extension Outcome {
  /// The CloudEvents type, `ce_type`; nil for what no event of its own tells.
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

  /// Those that events tell.
  public static let events = allCases.filter { $0.cloudEventsType != nil }

  /// The word for it: of an event the middle of its type, `carillon.<name>.v1`; else what `explain` calls the journal's verdict.
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

  /// The event type of a name.
  public init?(name: String) {
    guard let type = Self.events.first(where: { $0.name == name }) else { return nil }
    self = type
  }

  /// The event type that a `ce_type` names.
  public init?(cloudEventsType name: String) {
    guard let type = Self.events.first(where: { $0.cloudEventsType?.description == name }) else { return nil }
    self = type
  }

  /// Whether it is about a device and not about a request.
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
  /// The verdict's byte in the journal, which takes four bits, and 15 is a run: never renumber. Nil for what is no verdict.
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

  /// The verdict of a byte in the journal.
  public init?(journalByte byte: UInt8) {
    guard byte < Self.verdicts.count, let verdict = Self.verdicts[Int(byte)] else { return nil }
    self = verdict
  }

  private static let verdicts = (0...JournalLayout.verdictMask).map { byte in allCases.first { $0.journalByte == byte } }

  /// The event that the transform stage emits of a request with this verdict; nil where only the journal has the verdict.
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

  /// Its word in the metric of requests; nil for what no request ends as in the transform stage.
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

  /// Its word in the metric of the judge's verdicts, one for each device; nil for what the judge does not say.
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
  /// The final outcome that a request has at a device of which this is told; nil while one is to come, and for what says nothing of one.
  public var finalOutcome: Outcome? {
    switch self {
    case .delivered, .updated, .removed, .collapsed, .expired, .evicted, .filtered, .duplicate, .unregistered, .canceled, .rejected,
      .wrongUser:
      self
    // The acknowledgement may be lost with its session: a person who answers has seen it.
    case .response, .dismissed: .delivered
    case .wrongApplication, .deadLettered: .rejected
    case .queued, .scheduled, .carriedOut, .addressed, .replayed, .unreadable, .registered, .settingsChanged, .unregisteredDevice: nil
    }
  }

  /// Of several outcomes of a request at one device the one with the highest weight counts; nil for what says nothing of a device.
  ///
  /// What the device has said outweighs what says that it was not shown. That outweighs the hope that it will be. A duplicate only tells that
  /// another record of the same id is responsible.
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

  /// The one that counts of what is told of one request at one device; the first of equals.
  public static func weightiest(of outcomes: some Sequence<Outcome>) -> Outcome? {
    var found: (outcome: Outcome, weight: Int)?
    for outcome in outcomes {
      if let weight = outcome.weight, weight > found?.weight ?? 0 { found = (outcome, weight) }
    }
    return found?.outcome
  }

  /// Whether the notification is no longer in its device's mailbox afterwards.
  public var endsMailboxEntry: Bool {
    switch self {
    case .delivered, .updated, .removed, .collapsed, .filtered, .expired, .evicted, .unregistered, .canceled, .rejected: true
    case .duplicate, .wrongApplication, .deadLettered, .wrongUser, .queued, .scheduled, .carriedOut, .addressed, .replayed, .unreadable,
      .response,
      .dismissed, .registered, .settingsChanged, .unregisteredDevice:
      false
    }
  }

  /// Whether the judge put the request into the device's mailbox, or would have if it had come in time.
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

  /// Whether the device has acknowledged that it has it.
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
