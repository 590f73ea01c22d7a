import Notifications

/// One thing that the topics say, in a fixed form: what waits in a spill file, and what the judges read.
///
/// Texts are there by their hashes; where the record lies is kept, so that whoever needs the texts can read it again. Its bytes are
/// written and read by one process, so they are those of memory.
struct AuditFact: Sendable, Hashable {
  enum Kind: UInt8, Sendable {
    // Of these there is the record of a request, and what only says something about one without a device.
    case request, deadLetter, addressed, rejected
    // Verdicts, answers and endings.
    case queued, delivered, updated, removed, response, dismissed
    case duplicate, collapsed, filtered, expired, evicted, unregistered, canceled
    // About a device.
    case registered, unregisteredDevice
    /// What is told of a request at one stage, and is judged with all of its device later: it was queued, and no ending is known.
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
  /// The revision's timestamp, in milliseconds since 1970: the source's, or later. Partition and offset are the source's.
  var revision: UInt64 = 0
  /// When it was told, or published: milliseconds since 1970.
  var time: Int64 = 0
  /// The event's id; for events that tell the same happening it is the same.
  var statement: UInt64 = 0
  /// A request's end in milliseconds since 1970; for how many devices it is; the hash of a response's id.
  var number: Int64 = 0
  /// Where the record lies.
  var offset: Int64 = -1
  /// The record's partition.
  var partition: Int32 = -1
  /// The source's partition.
  var sourcePartition: Int32 = -1
  /// The hash of the worker's name.
  var worker: UInt32 = 0
  /// How often the requests topic was made anew before the source was written to it.
  var era: UInt16 = 0
  /// What it is.
  var kind: Kind
  /// What else it is.
  var flags: Flags = []

  init(_ kind: Kind) { self.kind = kind }

  var isShow: Bool { kind == .delivered || kind == .updated }
  /// The device has said that it shows it now.
  var isNewShow: Bool { isShow && !flags.contains(.isKnown) }

  /// The revision as a whole.
  var order: Revision {
    Revision(timestamp: revision, partition: log, offset: UInt64(clamping: sourceOffset))
  }

  /// The partition of one era: only within it offsets say what is newer.
  var log: UInt32 { UInt32(era) << 16 | UInt32(truncatingIfNeeded: sourcePartition) & 0xFFFF }
}

extension AuditFact.Kind {
  init?(_ type: EventType) {
    switch type {
    case .addressed: self = .addressed
    case .rejected: self = .rejected
    case .queued: self = .queued
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
    case .scheduled, .settingsChanged: return nil
    }
  }

  /// Whether all facts of a device are needed to judge it.
  var isJudgedByDevice: Bool {
    switch self {
    case .queued, .delivered, .updated, .removed, .collapsed, .expired, .unregistered, .response, .dismissed, .registered,
      .unregisteredDevice, .open, .refused:
      true
    default: false
    }
  }
}
