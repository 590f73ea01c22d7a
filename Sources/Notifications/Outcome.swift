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
  /// What there is to know of an outcome. Each request reads rows, so they keep nothing that is counted.
  private struct Row {
    /// The CloudEvents type of its event.
    var event: StaticString?
    /// The name of an outcome without an event.
    var word: StaticString?
    /// The verdict's byte in the journal.
    var journal: UInt8?
    /// The word in the metric of requests.
    var request: StaticString?
    /// The word in the metric of the judge's verdicts.
    var device: StaticString?
    /// The final outcome at a device that it implies.
    var final: Outcome?
    /// The weight among a request's outcomes at a device.
    var weight: Int?
    var traits: Traits = []
  }

  private struct Traits: OptionSet {
    let rawValue: UInt8
    static let endsEntry = Traits(rawValue: 1)
    static let wasKept = Traits(rawValue: 2)
    static let isTaken = Traits(rawValue: 4)
    static let isAboutDevice = Traits(rawValue: 8)
  }

  private var row: Row {
    switch self {
    case .delivered: Row(event: "carillon.delivered.v1", final: .delivered, weight: 12, traits: [.endsEntry, .isTaken])
    case .updated: Row(event: "carillon.updated.v1", final: .updated, weight: 13, traits: [.endsEntry, .isTaken])
    case .removed: Row(event: "carillon.removed.v1", final: .removed, weight: 11, traits: [.endsEntry, .isTaken])
    case .collapsed:
      Row(
        event: "carillon.collapsed.v1", journal: 2, request: "collapsed", device: "collapsed", final: .collapsed, weight: 7,
        traits: .endsEntry)
    case .expired:
      Row(
        event: "carillon.expired.v1", journal: 1, request: "expired", device: "expired", final: .expired, weight: 9,
        traits: [.endsEntry, .wasKept])
    case .evicted: Row(event: "carillon.evicted.v1", final: .evicted, weight: 8, traits: .endsEntry)
    case .filtered: Row(event: "carillon.filtered.v1", journal: 7, request: "filtered", final: .filtered, weight: 6, traits: .endsEntry)
    case .duplicate:
      Row(event: "carillon.duplicate.v1", journal: 3, request: "duplicate", device: "duplicate", final: .duplicate, weight: 1)
    case .unregistered:
      Row(
        event: "carillon.unregistered.v1", journal: 4, request: "unregistered", device: "unregistered", final: .unregistered, weight: 5,
        traits: .endsEntry)
    case .canceled:
      Row(
        event: "carillon.canceled.v1", journal: 13, request: "canceled", device: "canceled", final: .canceled, weight: 4, traits: .endsEntry
      )
    case .rejected: Row(event: "carillon.rejected.v1", journal: 8, request: "rejected", final: .rejected, weight: 3, traits: .endsEntry)
    case .wrongApplication:
      Row(word: "wrong application", journal: 6, request: "rejected", device: "wrong_application", final: .rejected, weight: 3)
    case .deadLettered: Row(word: "dead-lettered", journal: 9, request: "poison", final: .rejected, weight: 3)
    case .wrongUser: Row(word: "left out", journal: 5, device: "other_user", final: .wrongUser, weight: 1)
    case .replayed: Row(word: "applied before", journal: 12, request: "replayed")
    case .unreadable: Row(word: "passed over as unreadable", journal: 11)
    case .queued: Row(word: "queued", journal: 0, request: "queued", device: "queued", weight: 2, traits: .wasKept)
    case .scheduled: Row(word: "scheduled", journal: 10, request: "scheduled", weight: 2)
    case .carriedOut: Row(word: "carried out", journal: 14, request: "carried_out")
    case .addressed: Row(event: "carillon.addressed.v1", request: "addressed")
    // The acknowledgement may be lost with its session. A person who responds has seen the notification.
    case .response: Row(event: "carillon.response.v1", final: .delivered, weight: 10)
    case .dismissed: Row(event: "carillon.dismissed.v1", final: .delivered, weight: 10)
    case .registered: Row(event: "carillon.registered.v1", traits: .isAboutDevice)
    case .settingsChanged: Row(event: "carillon.settings-changed.v1", traits: .isAboutDevice)
    case .unregisteredDevice: Row(event: "carillon.unregistered-device.v1", traits: .isAboutDevice)
    }
  }

  /// The rows in the order of the cases.
  private static let table = allCases.map(\.row)

  private func has(_ trait: Traits) -> Bool { Self.table[rawValue].traits.contains(trait) }
}

// MARK: Events

extension Outcome {
  /// The CloudEvents type, `ce_type`; nil for an outcome without an event.
  public var cloudEventsType: StaticString? { Self.table[rawValue].event }

  /// The outcomes that have an event.
  public static let events = allCases.filter { $0.cloudEventsType != nil }

  /// The name in events or in `explain`.
  ///
  /// For an event it is the middle of its type, `carillon.<name>.v1`. Else it is the word of `explain` for the journal's verdict.
  public var name: String {
    let row = Self.table[rawValue]
    return row.word?.description ?? String((row.event?.description ?? "").dropFirst("carillon.".count).dropLast(".v1".count))
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
  public var journalByte: UInt8? { Self.table[rawValue].journal }

  /// Finds the verdict of a byte in the journal.
  public init?(journalByte byte: UInt8) {
    guard byte < Self.verdicts.count, let verdict = Self.verdicts[Int(byte)] else { return nil }
    self = verdict
  }

  private static let verdicts = (0...JournalLayout.verdictMask).map { byte in allCases.first { $0.journalByte == byte } }

  /// The word in the metric of requests; nil for outcomes that it does not count.
  public var requestLabel: String? { Self.table[rawValue].request?.description }

  /// The word in the metric of the judge's verdicts; nil for other outcomes.
  public var deviceLabel: String? { Self.table[rawValue].device?.description }
}

// MARK: At a device

extension Outcome {
  /// The final outcome at a device that this implies; nil if it implies none.
  public var finalOutcome: Outcome? { Self.table[rawValue].final }

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
