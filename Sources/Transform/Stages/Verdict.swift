import Notifications
import Redis

/// What the judge script says of one request for one device.
enum Verdict {
  /// A newer revision of the same collapse id is known.
  case stale(by: JournalReference)
  /// It is in the mailbox now (or, past its expiration, only remembered).
  case new(Application)
  /// It was applied before, from this same record: everything is said and done again as at the first time.
  case again(Application)
  /// The same apns-id came before from another record.
  case duplicate
  /// The device does not belong to the user who is meant: no longer, or not yet when the request was published.
  case foreign
  /// No such device is registered.
  case unregistered
  /// The device is registered for another application.
  case wrongApplication

  /// What the journal is to say of it.
  func judgement(of request: DeviceRequest) -> JournalJudgement {
    let own = request.entry.revision
    switch self {
    case .new(let application), .again(let application):
      return JournalJudgement(request.isExpired ? .expired : .kept, revision: application.revision, other: application.superseded)
    case .stale(let by): return JournalJudgement(.stale, revision: own, other: by)
    case .duplicate: return JournalJudgement(.duplicate, revision: own)
    case .foreign: return JournalJudgement(.wrongUser, revision: own)
    case .unregistered: return JournalJudgement(.unregistered, revision: own)
    case .wrongApplication: return JournalJudgement(.wrongApplication, revision: own)
    }
  }

  /// What applying a request did.
  struct Application {
    /// Where the device is connected; nil: nowhere, or the entry is no longer in the mailbox.
    var presence: Presence?
    /// The revision as it was kept.
    var revision: Revision
    /// The older revision that it took the place of in the mailbox, and its apns-id.
    var superseded: JournalReference?
  }

  /// A device's session: the partition of `deliveries` that its lane reads, and its generation.
  struct Presence {
    var partition: Int32
    var generation: UInt64
  }

  /// Reads one verdict of the script's reply; nil for what the script never says.
  init?(_ reply: RedisReplyView) {
    switch reply[0]?.integer {
    case 0:
      guard let revision = reply[2]?.bytes.flatMap(Revision.init(bytes:)), let id = reply[3]?.bytes.flatMap(NotificationID.init(bytes:))
      else { return nil }
      self = .stale(by: JournalReference(revision: revision, id: id))
    case 1:
      guard let application = Application(reply) else { return nil }
      self = .new(application)
    case 2:
      guard let application = Application(reply) else { return nil }
      self = .again(application)
    case 3: self = .duplicate
    case 4: self = .foreign
    case 5: self = .unregistered
    case 6: self = .wrongApplication
    default: return nil
    }
  }
}

extension Verdict.Application {
  fileprivate init?(_ reply: RedisReplyView) {
    guard let revision = reply[2]?.bytes.flatMap(Revision.init(bytes:)) else { return nil }
    self.revision = revision
    presence = reply[1]?.bytes.flatMap(Verdict.Presence.init)
    superseded = reply[3]?.bytes.flatMap(JournalReference.init)
  }
}

extension JournalReference {
  fileprivate init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == Revision.byteCount + NotificationID.byteCount,
      let revision = Revision(bytes: UnsafeRawBufferPointer(rebasing: bytes.prefix(Revision.byteCount))),
      let id = NotificationID(bytes: UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Revision.byteCount)))
    else { return nil }
    self.init(revision: revision, id: id)
  }
}

extension Verdict.Presence {
  fileprivate init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 12 else { return nil }
    partition = Int32(bigEndian: bytes.loadUnaligned(as: Int32.self))
    generation = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt64.self))
  }
}
