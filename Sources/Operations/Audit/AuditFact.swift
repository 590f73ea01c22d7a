import Notifications

/// One thing that the topics say, in a fixed form: what waits in a spill file, and what the judges read.
///
/// Texts are there by their hashes; where the record lies is kept, so that whoever needs the texts can read it again. Its bytes are
/// written and read by one process, so they are those of memory.
struct AuditFact: Sendable, Hashable {
  enum Kind: UInt8, Sendable {
    // Of these there is the record of a request, and what only says something about one without a device.
    case request, deadLetter, addressed, rejected
    // What the journal says: it is in the device's mailbox; it was judged otherwise; some of a person's devices, and how many there are.
    case kept, judged, page, closing
    /// The journal says of a record that comes again that it was applied before.
    case applied
    // Answers and endings.
    case delivered, updated, removed, response, dismissed
    case duplicate, collapsed, filtered, expired, evicted, unregistered, canceled
    // About a device.
    case registered, unregisteredDevice
    /// What is told of a request at one stage, and is judged with all of its device later: it was kept, and no ending is known.
    case open
    /// A request that named the device was rejected since it was registered for another application.
    case refused
  }

  struct Flags: OptionSet, Sendable, Hashable {
    let rawValue: UInt8
    /// A request for all devices of a person.
    static let isForUser = Flags(rawValue: 1)
    /// A request that breaks a rule as far as this program can tell: its target is not known.
    static let isBroken = Flags(rawValue: 2)
    /// A request that removes.
    static let isRemoval = Flags(rawValue: 4)
    /// A record that came again as new work.
    static let isRedrive = Flags(rawValue: 8)
    /// A delivery that the device has not taken again, since it had it.
    static let isKnown = Flags(rawValue: 16)
    /// A rejection since the device is registered for another application.
    static let isForOtherApplication = Flags(rawValue: 32)
    /// A rejection of what could not be processed, whatever was done of it before.
    static let isOfPoison = isKnown
    /// A request that is in its device's mailbox, as the journal says.
    static let isKept = isKnown
    /// The event names what took the notification's place.
    static let namesSuccessor = Flags(rawValue: 64)
    /// The request came from the audited topic first.
    static let isOfTopic = Flags(rawValue: 128)
  }

  /// The apns-id; of no meaning for a fact about a device, which its kind tells.
  var id = NotificationID(high: 0, low: 0)
  /// Where the request came from first.
  var sourceOffset: Int64 = -1
  /// The hash of the device's token; 0: none.
  var device: UInt64 = 0
  /// The hash of the identifier; 0: none.
  var identifier: UInt64 = 0
  /// The revision's timestamp, in milliseconds since 1970: the source's, or later. Partition and offset are the source's. Of a page, which
  /// of its journal record's entries it is.
  var revision: UInt64 = 0
  /// When it was told, or published: milliseconds since 1970.
  var time: Int64 = 0
  /// The event's id; for events that tell the same happening it is the same. Of a page and a closing the XOR of the devices' hashes. Of a
  /// request one more than the offset of the journal's record that tells how it was judged; 0: none was met.
  var statement: UInt64 = 0
  /// A request's end in milliseconds since 1970; for how many devices it is; the hash of a response's id. Of what the journal says of a
  /// request, the offset of that request's record. Of what a device has, when it was kept for it; 0: not known. Of an expiration, when the
  /// broker wrote its event, by the broker's clock; 0: not known.
  var number: Int64 = 0
  /// Where the record lies.
  var offset: Int64 = -1
  /// The record's partition.
  var partition: Int32 = -1
  /// The source's partition.
  var sourcePartition: Int32 = -1
  /// The hash of the worker's name. Of a request, how long after its publication it was judged, in milliseconds.
  var worker: UInt32 = 0
  /// The incarnation of the requests topic that the source was written to, as far as is known.
  var incarnation: UInt16 = 0
  /// What it is.
  var kind: Kind
  /// What else it is.
  var flags: Flags = []

  init(_ kind: Kind) { self.kind = kind }

  var isShow: Bool { kind == .delivered || kind == .updated }
  /// The device has acknowledged it.
  var isTaken: Bool { isShow || kind == .removed }
  /// The device has said that it shows it now.
  var isNewShow: Bool { isShow && !flags.contains(.isKnown) }

  /// The revision as a whole.
  var order: Revision {
    Revision(timestamp: revision, partition: log, offset: UInt64(clamping: sourceOffset))
  }

  /// The partition of one incarnation: only within it offsets say what is newer.
  var log: UInt32 { UInt32(incarnation) << 16 | UInt32(truncatingIfNeeded: sourcePartition) & 0xFFFF }
}

extension AuditFact {
  /// Takes over, for a request, what the journal says of it.
  mutating func journal(_ entry: AuditFact) {
    statement = UInt64(clamping: entry.offset) + 1
    incarnation = entry.incarnation
    guard entry.kind == .kept else { return }
    flags.insert(.isKept)
    worker = UInt32(clamping: entry.time.subtractingReportingOverflow(time).partialValue)
    revision = entry.revision
  }

  /// What a request's fact says of the journal, as a fact of its own.
  var entry: AuditFact {
    var entry = AuditFact(flags.contains(.isKept) ? .kept : .judged)
    entry.time = time.addingReportingOverflow(Int64(worker)).partialValue
    entry.offset = Int64(clamping: statement) - 1
    entry.partition = partition
    entry.incarnation = incarnation
    entry.revision = revision
    return entry.told(of: self)
  }

  /// An entry of the journal, when it is known of which request it is.
  func told(of request: AuditFact) -> AuditFact {
    var fact = self
    fact.id = request.id
    (fact.sourcePartition, fact.sourceOffset) = (request.sourcePartition, request.sourceOffset)
    fact.flags.formUnion(request.flags.intersection(.isOfTopic))
    guard kind == .kept || kind == .judged || kind == .applied else { return fact }
    fact.number = request.offset
    if kind == .kept {
      fact.identifier = request.identifier
      if fact.device == 0 { fact.device = request.device }
    }
    return fact
  }
}

extension AuditFact.Kind {
  /// Whether the journal says it.
  var isOfJournal: Bool { self == .kept || self == .judged || self == .page || self == .closing || self == .applied }

  init?(_ type: EventType) {
    switch type {
    case .addressed: self = .addressed
    case .rejected: self = .rejected
    case .delivered: self = .delivered
    case .updated: self = .updated
    case .removed: self = .removed
    case .response: self = .response
    case .dismissed: self = .dismissed
    case .duplicate: self = .duplicate
    case .collapsed: self = .collapsed
    case .filtered: self = .filtered
    case .expired: self = .expired
    case .evicted: self = .evicted
    case .unregistered: self = .unregistered
    case .canceled: self = .canceled
    case .registered: self = .registered
    case .unregisteredDevice: self = .unregisteredDevice
    case .settingsChanged: return nil
    }
  }

  /// Whether all facts of a device are needed to judge it.
  var isJudgedByDevice: Bool {
    switch self {
    case .kept, .delivered, .updated, .removed, .collapsed, .expired, .unregistered, .response, .dismissed, .registered,
      .unregisteredDevice, .open, .refused:
      true
    default: false
    }
  }
}
