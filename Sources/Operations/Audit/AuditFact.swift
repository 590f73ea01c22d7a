import Notifications

/// A statement of a record in a fixed form.
///
/// It is the element of spill files and the input of `RequestAudit` and `DeviceAudit`. Hashes replace texts. The position of the record is
/// kept, so that the texts can be read again. The bytes are those of memory, because one process writes and reads them.
struct AuditFact: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    /// The record of a request.
    case request
    /// A dead letter: the request could not be processed.
    case deadLetter
    /// The journal's verdict: neither kept nor replayed.
    case judged
    // The journal has some of a person's devices; a closing has their total number.
    case page, closing
    /// An event or the journal states the outcome of the request or the device.
    case told(Outcome)
    /// A request that a mailbox kept, without a known ending. It is checked with all facts of its device.
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
    /// The device dropped the delivery, because it had it already.
    static let isKnown = Flags(rawValue: 16)
    /// The rejection says that the device is registered for another application.
    static let isForOtherApplication = Flags(rawValue: 32)
    /// The rejection is of a record that could not be processed.
    ///
    /// Some devices may have got it before.
    static let isOfPoison = isKnown
    /// The event names the request that replaced or removed the notification.
    static let namesSuccessor = Flags(rawValue: 64)
    /// The request removes all notifications.
    ///
    /// The request's own fact has this flag. So do the facts of its mailbox entries, for `DeviceAudit`.
    static let removesAll = namesSuccessor
    /// The request is a location request, or a removal of such, so no removal of all ends it. The same facts have this flag, and those of
    /// endings by another request.
    static let isOfPending = isForOtherApplication
    /// The request's first record is in the audited topic.
    static let isOfTopic = Flags(rawValue: 128)
    /// The request fires an occurrence. If it does not fit its schedule, it reaches nobody.
    static let isFiring = Flags(rawValue: 256)
    /// An occurrence or a cancel was too late. The event says nothing about the device.
    static let isSkipped = Flags(rawValue: 512)
    /// The request has a trigger that is due at a time.
    static let isLater = Flags(rawValue: 1024)
    /// The removal has a bound: an older revision than its own. It is kept at the bound's position.
    static let isBounded = Flags(rawValue: 2048)
    /// The request is beyond a rate limit, as the audit counts. The rejection says so.
    static let isBeyondLimit = Flags(rawValue: 4096)
    /// The audit does not know all requests of the window, or not the limit.
    static let isLimitUnknown = Flags(rawValue: 8192)
  }

  /// The apns-id; meaningless for a statement about a device.
  var id = NotificationID(high: 0, low: 0)
  /// The offset of the request's first record.
  var sourceOffset: Int64 = -1
  /// The hash of the device's token; 0 for none.
  var device: UInt64 = 0
  /// The hash of the identifier; 0 for none.
  ///
  /// For an entry of the journal, until it is joined with its request: the timestamp of the request's record.
  var identifier: UInt64 = 0
  /// The revision's timestamp in milliseconds since 1970: the source's, or a later one.
  ///
  /// Its partition and offset are the source's.
  var revision: UInt64 = 0
  /// The time of the statement or of the publication: milliseconds since 1970.
  var time: Int64 = 0
  /// The event's id, which a repeated event shares.
  ///
  /// For a page and a closing: the XOR of the devices' hashes. For a request that schedules or fires: its schedule. For a request that ended
  /// a schedule, by the journal: that schedule. It is 0 for none.
  var statement: UInt64 = 0
  /// A number whose meaning depends on the kind.
  ///
  /// For a request: its end in milliseconds since 1970, or the number of its devices. For a response: the hash of its id. For a journal
  /// entry: the offset of the request's record. For an answer of a device: the time at which the entry was kept; 0 if unknown. For an
  /// expiration: the broker's time of its event; 0 if unknown.
  var number: Int64 = 0
  /// The record's offset.
  var offset: Int64 = -1
  /// The record's partition.
  var partition: Int32 = -1
  /// The source's partition.
  var sourcePartition: Int32 = -1
  /// The hash of the worker's name.
  var worker: UInt32 = 0
  /// The incarnation of the requests topic at the source, if known.
  var incarnation: UInt16 = 0
  /// The kind of statement.
  var kind: Kind
  /// Further properties.
  var flags: Flags = []

  init(_ kind: Kind) { self.kind = kind }

  /// The outcome that an event or the journal states; nil for other facts.
  var outcome: Outcome? { if case .told(let outcome) = kind { outcome } else { nil } }

  var isShow: Bool { outcome == .delivered || outcome == .updated }
  /// Whether the device has acknowledged the notification.
  var isTaken: Bool { outcome?.isTaken == true }
  /// Whether the device shows the notification since then.
  var isNewShow: Bool { isShow && !flags.contains(.isKnown) }

  /// The complete revision: as it was kept, unless the request was stale.
  var order: Revision {
    Revision(timestamp: revision, partition: log, offset: UInt64(clamping: sourceOffset))
  }

  /// The position of the request's first record.
  var source: RecordPlace { RecordPlace(partition: sourcePartition, offset: sourceOffset) }

  /// The partition of one incarnation. Offsets are comparable only within it.
  var log: UInt32 { UInt32(incarnation) << 16 | UInt32(truncatingIfNeeded: sourcePartition) & 0xFFFF }
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

  /// Whether it is checked with all facts of its device.
  var isCheckedByDevice: Bool {
    switch self {
    case .told(let outcome): outcome.auditUse.contains(.byDevice)
    case .open, .refused: true
    case .request, .deadLetter, .judged, .page, .closing: false
    }
  }

  /// The order of facts that are equal otherwise.
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

/// The purposes for which an audit reads an outcome.
struct AuditUse: OptionSet {
  let rawValue: UInt8
  /// It is checked with all facts of its request.
  static let byRequest = AuditUse(rawValue: 1)
  /// It is checked with all facts of its device.
  static let byDevice = AuditUse(rawValue: 2)
  /// The device keeps its revision, so requests that are not newer collapse.
  static let keepsRevision = AuditUse(rawValue: 4)
  /// It makes another record with the same apns-id a duplicate.
  static let makesDuplicates = AuditUse(rawValue: 8)
}

extension Outcome {
  /// Whether only the journal has it, for a complete request without devices.
  var isOfWholeRequest: Bool { self == .replayed || self == .scheduled || self == .carriedOut }

  /// The purposes for which an audit reads it; none if it does not.
  var auditUse: AuditUse {
    switch self {
    case .delivered, .updated, .expired: [.byRequest, .byDevice, .keepsRevision, .makesDuplicates]
    case .queued, .removed: [.byRequest, .byDevice, .keepsRevision]
    case .collapsed, .canceled, .response, .dismissed: [.byRequest, .byDevice, .makesDuplicates]
    case .evicted, .filtered: [.byRequest, .makesDuplicates]
    case .unregistered: [.byRequest, .byDevice]
    case .duplicate, .rejected, .wrongApplication, .deadLettered, .wrongUser, .replayed, .unreadable, .scheduled, .carriedOut, .addressed:
      .byRequest
    case .registered, .unregisteredDevice: .byDevice
    case .settingsChanged: []
    }
  }
}
