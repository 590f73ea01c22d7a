import Notifications

/// One statement of a record in a fixed form. It is the element of spill files and the input of the judges.
///
/// Texts are replaced by their hashes. The record's place is kept, so the texts can be read again. One process writes and reads the bytes,
/// so they are those of memory.
struct AuditFact: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    /// The record of a request.
    case request
    /// A dead letter: the request could not be processed.
    case deadLetter
    /// What the journal says: it was judged, and neither kept nor replayed.
    case judged
    // The journal has some of a person's devices, and says how many there are.
    case page, closing
    /// An event or the journal says what became of the request or the device.
    case told(Outcome)
    /// A request that a device's mailbox kept, and of which no ending is known. It is judged with all facts of its device.
    case open
    /// A request for the device was rejected, because the device was registered for another application.
    case refused
  }

  struct Flags: OptionSet, Sendable, Hashable {
    let rawValue: UInt16
    /// The request is for all devices of a person.
    static let isForUser = Flags(rawValue: 1)
    /// The request breaks a rule, as far as this program can tell. Its target is unknown.
    static let isBroken = Flags(rawValue: 2)
    /// The request removes or cancels a notification.
    static let isRemoval = Flags(rawValue: 4)
    /// The record was redriven.
    static let isRedrive = Flags(rawValue: 8)
    /// The device dropped the delivery, because it had taken it before.
    static let isKnown = Flags(rawValue: 16)
    /// The rejection says that the device is registered for another application.
    static let isForOtherApplication = Flags(rawValue: 32)
    /// The rejection is of a record that could not be processed, whatever was done with it before.
    static let isOfPoison = isKnown
    /// The journal says that the request is in its device's mailbox.
    static let isKept = isKnown
    /// The event names the successor of the notification.
    static let namesSuccessor = Flags(rawValue: 64)
    /// The request removes all notifications: in its own fact, and in those that the judge of devices gets of where it was kept.
    static let removesAll = namesSuccessor
    /// The request has a trigger that the device evaluates, so that no removal of all ends it: in the same facts.
    static let waitsForPlace = isForOtherApplication
    /// The request's first record is in the audited topic.
    static let isOfTopic = Flags(rawValue: 128)
    /// The request fires an occurrence of a schedule. Where it does not fit how the schedule stands, it reaches nobody.
    static let isFiring = Flags(rawValue: 256)
    /// An occurrence or a cancel came too late, within its lifetime perhaps: it says nothing of what the device has.
    static let isSkipped = Flags(rawValue: 512)
    /// The request waits for its time: its trigger is due at a time.
    static let isLater = Flags(rawValue: 1024)
    /// The removal takes nothing newer than another revision. It is kept at the place of that one.
    static let isBounded = Flags(rawValue: 2048)
  }

  /// The apns-id; meaningless for a statement about a device.
  var id = NotificationID(high: 0, low: 0)
  /// The offset of the request's first record.
  var sourceOffset: Int64 = -1
  /// The hash of the device's token; 0 for none.
  var device: UInt64 = 0
  /// The hash of the identifier; 0 for none. For a request that ended a schedule, by the journal: the offset of the one that had scheduled.
  var identifier: UInt64 = 0
  /// The revision's timestamp in milliseconds since 1970: the source's, or later. Partition and offset are the source's. For a page, its
  /// index among the entries of its journal record.
  var revision: UInt64 = 0
  /// The time of the statement or of the publication: milliseconds since 1970.
  var time: Int64 = 0
  /// The event's id, which is the same for a repeated event. For a page and a closing, the XOR of the devices' hashes. For a request, one
  /// more than the offset of its journal record; 0 if there is none. For a request that ended a schedule, by the journal: the hash of the
  /// apns-id of the one that had scheduled; its time is the revision then.
  var statement: UInt64 = 0
  /// The meaning depends on the kind. For a request: its end in milliseconds since 1970, or the number of its devices. For a response: the
  /// hash of its id. For a journal entry: the offset of the request's record. For an answer of a device: when the entry was kept, 0 if
  /// unknown. For an expiration: when the broker wrote its event, by the broker's clock, 0 if unknown.
  var number: Int64 = 0
  /// The record's offset.
  var offset: Int64 = -1
  /// The record's partition.
  var partition: Int32 = -1
  /// The source's partition.
  var sourcePartition: Int32 = -1
  /// The hash of the worker's name. For a request: how long after its publication it was judged, in milliseconds.
  var worker: UInt32 = 0
  /// The incarnation of the requests topic at the source, if known.
  var incarnation: UInt16 = 0
  /// The kind of statement.
  var kind: Kind
  /// Further properties.
  var flags: Flags = []

  init(_ kind: Kind) { self.kind = kind }

  /// The schedule that the request ended, by the journal: it canceled it, or took its place.
  var superseded: ScheduleFact.Schedule? {
    guard outcome == .carriedOut || outcome == .scheduled, statement != 0 else { return nil }
    return ScheduleFact.Schedule(id: statement, timestamp: revision, offset: identifier)
  }

  /// What became of the request or the device, where an event or the journal says so.
  var outcome: Outcome? { if case .told(let outcome) = kind { outcome } else { nil } }

  var isShow: Bool { outcome == .delivered || outcome == .updated }
  /// Whether the device has acknowledged it.
  var isTaken: Bool { outcome?.isTaken == true }
  /// Whether the device shows it from then on.
  var isNewShow: Bool { isShow && !flags.contains(.isKnown) }

  /// The revision as a whole: as it was kept, unless the request was stale.
  var order: Revision {
    Revision(timestamp: revision, partition: log, offset: UInt64(clamping: sourceOffset))
  }

  /// The partition of one incarnation. Offsets are comparable only within it.
  var log: UInt32 { UInt32(incarnation) << 16 | UInt32(truncatingIfNeeded: sourcePartition) & 0xFFFF }
}

extension AuditFact {
  /// Takes the journal's statement on a request.
  mutating func journal(_ entry: AuditFact) {
    statement = UInt64(clamping: entry.offset) + 1
    incarnation = entry.incarnation
    guard entry.outcome == .queued else { return }
    flags.insert(.isKept)
    worker = UInt32(clamping: entry.time.subtractingReportingOverflow(time).partialValue)
    revision = entry.revision
  }

  /// The journal's statement in a request's fact, as a fact of its own.
  var entry: AuditFact {
    var entry = AuditFact(flags.contains(.isKept) ? .told(.queued) : .judged)
    entry.time = time.addingReportingOverflow(Int64(worker)).partialValue
    entry.offset = Int64(clamping: statement) - 1
    entry.partition = partition
    entry.incarnation = incarnation
    entry.revision = revision
    return entry.told(of: self)
  }

  /// An entry of the journal, completed by its request.
  func told(of request: AuditFact) -> AuditFact {
    var fact = self
    fact.id = request.id
    (fact.sourcePartition, fact.sourceOffset) = (request.sourcePartition, request.sourceOffset)
    fact.flags.formUnion(request.flags.intersection(.isOfTopic))
    guard kind == .judged || outcome == .queued || outcome?.isOfWholeRequest == true else { return fact }
    fact.number = request.offset
    if outcome == .queued {
      fact.identifier = request.identifier
      if fact.device == 0 { fact.device = request.device }
    }
    return fact
  }
}

extension AuditFact.Kind {
  /// Whether it is a statement of the journal.
  var isOfJournal: Bool {
    switch self {
    case .judged, .page, .closing: true
    case .told(let outcome): outcome.event == nil
    case .request, .deadLetter, .open, .refused: false
    }
  }

  /// Whether judging it needs all facts of the device.
  var isJudgedByDevice: Bool {
    switch self {
    case .told(let outcome): outcome.auditUse.contains(.byDevice)
    case .open, .refused: true
    case .request, .deadLetter, .judged, .page, .closing: false
    }
  }

  /// The order of facts that nothing else puts in order.
  var rank: Int {
    switch self {
    case .request: 0
    case .deadLetter: 1
    case .judged: 2
    case .page: 3
    case .closing: 4
    case .open: 5
    case .refused: 6
    case .told(let outcome): (outcome.event == nil ? 7 : 100) + outcome.rawValue
    }
  }
}

/// What an audit needs an outcome for.
struct AuditUse: OptionSet {
  let rawValue: UInt8
  /// It is judged with all that is told of its request.
  static let byRequest = AuditUse(rawValue: 1)
  /// It is judged with all that is told of its device.
  static let byDevice = AuditUse(rawValue: 2)
  /// The device keeps its revision, so what is not newer collapses.
  static let keepsRevision = AuditUse(rawValue: 4)
  /// Another record with the same apns-id is a duplicate because of it.
  static let makesDuplicates = AuditUse(rawValue: 8)
}

extension Outcome {
  /// Whether only the journal tells it, and of a whole request: nothing is told of a device then.
  var isOfWholeRequest: Bool { self == .replayed || self == .scheduled || self == .carriedOut }

  /// What the audit needs it for; nothing: it is not read.
  var auditUse: AuditUse {
    switch self {
    case .delivered, .updated, .expired: [.byRequest, .byDevice, .keepsRevision, .makesDuplicates]
    case .queued, .removed: [.byRequest, .byDevice, .keepsRevision]
    case .collapsed, .response, .dismissed: [.byRequest, .byDevice, .makesDuplicates]
    case .evicted, .filtered, .canceled: [.byRequest, .makesDuplicates]
    case .unregistered: [.byRequest, .byDevice]
    case .duplicate, .rejected, .wrongApplication, .deadLettered, .wrongUser, .replayed, .unreadable, .scheduled, .carriedOut, .addressed:
      .byRequest
    case .registered, .unregisteredDevice: .byDevice
    case .settingsChanged: []
    }
  }
}
