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

// MARK: The table

extension Outcome {
  /// What there is to know of an outcome: the columns of the table. `word` is the name of an outcome without an event. Each request reads rows,
  /// so they keep nothing that is counted.
  private typealias Row = (
    type: StaticString?, word: StaticString?, journalByte: UInt8?, requestLabel: StaticString?, deviceLabel: StaticString?,
    finalOutcome: Outcome?, weight: Int?, traits: Traits
  )

  private struct Traits: OptionSet {
    let rawValue: UInt8
    static let endsEntry = Traits(rawValue: 1)
    static let wasKept = Traits(rawValue: 2)
    static let isTaken = Traits(rawValue: 4)
    static let isAboutDevice = Traits(rawValue: 8)
  }

  private var row: Row {
    switch self {
    case .delivered: ("carillon.delivered.v1", nil, nil, nil, nil, .delivered, 12, [.endsEntry, .isTaken])
    case .updated: ("carillon.updated.v1", nil, nil, nil, nil, .updated, 13, [.endsEntry, .isTaken])
    case .removed: ("carillon.removed.v1", nil, nil, nil, nil, .removed, 11, [.endsEntry, .isTaken])
    case .collapsed: ("carillon.collapsed.v1", nil, 2, "collapsed", "collapsed", .collapsed, 7, [.endsEntry])
    case .expired: ("carillon.expired.v1", nil, 1, "expired", "expired", .expired, 9, [.endsEntry, .wasKept])
    case .evicted: ("carillon.evicted.v1", nil, nil, nil, nil, .evicted, 8, [.endsEntry])
    case .filtered: ("carillon.filtered.v1", nil, 7, "filtered", nil, .filtered, 6, [.endsEntry])
    case .duplicate: ("carillon.duplicate.v1", nil, 3, "duplicate", "duplicate", .duplicate, 1, [])
    case .unregistered: ("carillon.unregistered.v1", nil, 4, "unregistered", "unregistered", .unregistered, 5, [.endsEntry])
    case .canceled: ("carillon.canceled.v1", nil, 13, "canceled", "canceled", .canceled, 4, [.endsEntry])
    case .rejected: ("carillon.rejected.v1", nil, 8, "rejected", nil, .rejected, 3, [.endsEntry])
    case .wrongApplication: (nil, "wrong application", 6, "rejected", "wrong_application", .rejected, 3, [])
    case .deadLettered: (nil, "dead-lettered", 9, "poison", nil, .rejected, 3, [])
    case .wrongUser: (nil, "left out", 5, nil, "other_user", .wrongUser, 1, [])
    case .replayed: (nil, "applied before", 12, "replayed", nil, nil, nil, [])
    case .unreadable: (nil, "passed over as unreadable", 11, nil, nil, nil, nil, [])
    case .queued: (nil, "queued", 0, "queued", "queued", nil, 2, [.wasKept])
    case .scheduled: (nil, "scheduled", 10, "scheduled", nil, nil, 2, [])
    case .carriedOut: (nil, "carried out", 14, "carried_out", nil, nil, nil, [])
    case .addressed: ("carillon.addressed.v1", nil, nil, "addressed", nil, nil, nil, [])
    // The acknowledgement may be lost with its session. A person who responds has seen the notification.
    case .response: ("carillon.response.v1", nil, nil, nil, nil, .delivered, 10, [])
    case .dismissed: ("carillon.dismissed.v1", nil, nil, nil, nil, .delivered, 10, [])
    case .registered: ("carillon.registered.v1", nil, nil, nil, nil, nil, nil, [.isAboutDevice])
    case .settingsChanged: ("carillon.settings-changed.v1", nil, nil, nil, nil, nil, nil, [.isAboutDevice])
    case .unregisteredDevice: ("carillon.unregistered-device.v1", nil, nil, nil, nil, nil, nil, [.isAboutDevice])
    }
  }

  /// The rows in the order of the cases.
  private static let table = allCases.map(\.row)

  private func has(_ trait: Traits) -> Bool { Self.table[rawValue].traits.contains(trait) }
}

// MARK: Events

extension Outcome {
  /// The CloudEvents type, `ce_type`; nil for an outcome without an event.
  public var cloudEventsType: StaticString? { Self.table[rawValue].type }

  /// The outcomes that have an event.
  public static let events = allCases.filter { $0.cloudEventsType != nil }

  /// The name in events or in `explain`.
  ///
  /// For an event it is the middle of its type, `carillon.<name>.v1`. Else it is the word of `explain` for the journal's verdict.
  public var name: String {
    let row = Self.table[rawValue]
    return row.word?.description ?? String((row.type?.description ?? "").dropFirst("carillon.".count).dropLast(".v1".count))
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
  public var isAboutDevice: Bool { has(.isAboutDevice) }

  /// The event that the transform stage emits for this verdict; nil for none.
  ///
  /// A verdict without an event of its own has that of its final outcome.
  public var event: Outcome? { cloudEventsType == nil ? finalOutcome.flatMap { $0.cloudEventsType == nil ? nil : $0 } : self }
}

// MARK: The journal and the metrics

extension Outcome {
  /// The verdict's byte in the journal; nil for an outcome that is no verdict.
  ///
  /// It takes four bits, and 15 is a run. Never renumber.
  public var journalByte: UInt8? { Self.table[rawValue].journalByte }

  /// Finds the verdict of a byte in the journal.
  public init?(journalByte byte: UInt8) {
    guard byte < Self.verdicts.count, let verdict = Self.verdicts[Int(byte)] else { return nil }
    self = verdict
  }

  private static let verdicts = (0...JournalLayout.verdictMask).map { byte in allCases.first { $0.journalByte == byte } }

  /// The word in the metric of requests; nil for outcomes that it does not count.
  public var requestLabel: String? { Self.table[rawValue].requestLabel?.description }

  /// The word in the metric of the judge's verdicts; nil for other outcomes.
  public var deviceLabel: String? { Self.table[rawValue].deviceLabel?.description }
}

// MARK: At a device

extension Outcome {
  /// The final outcome at a device that this implies; nil if it implies none.
  public var finalOutcome: Outcome? { Self.table[rawValue].finalOutcome }

  /// The weight among a request's outcomes at a device; nil if it is none.
  ///
  /// The highest weight counts. A statement of the device outweighs the other final outcomes, and these outweigh a delivery that is still
  /// to come. A duplicate weighs least, since another record of the same id decides.
  public var weight: Int? { Self.table[rawValue].weight }

  /// Returns the outcome with the highest weight; the first of equals.
  public static func weightiest(of outcomes: some Sequence<Outcome>) -> Outcome? {
    var found: (outcome: Outcome, weight: Int)?
    for outcome in outcomes {
      if let weight = outcome.weight, weight > found?.weight ?? 0 { found = (outcome, weight) }
    }
    return found?.outcome
  }

  /// Whether the notification has left its device's mailbox.
  public var endsMailboxEntry: Bool { has(.endsEntry) }

  /// Whether the judge put the request into the mailbox, or would have before its expiration.
  public var wasKept: Bool { has(.wasKept) }

  /// Whether the device has acknowledged the notification.
  public var isTaken: Bool { has(.isTaken) }

  /// Whether a person did it.
  public var isByPerson: Bool { self == .response || self == .dismissed }
}
