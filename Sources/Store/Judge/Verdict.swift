public import Notifications

/// What the judge script says of one request for one device.
public enum Verdict {
  /// A newer revision of the same collapse id is known.
  case stale(by: JournalReference)
  /// It is in the mailbox now (or, past its expiration, only remembered).
  case new(Application)
  /// It was applied before, from this same record: everything is emitted and done again as at the first time.
  case again(Application)
  /// The same apns-id came before from another record.
  case duplicate
  /// The device does not belong to the user who is meant: no longer, or not yet when the request was published.
  case wrongUser
  /// No such device is registered.
  case unregistered
  /// The device is registered for another application.
  case wrongApplication
  /// What Redis has of the device cannot be read, and so nothing was applied.
  case unreadable(String)

  /// What applying a request did.
  public struct Application {
    /// Where the device is connected; nil: nowhere, or the entry is no longer in the mailbox.
    public var presence: Presence?
    /// The revision as it was kept.
    public var revision: Revision
    /// The older revision that it took the place of in the mailbox, and its apns-id.
    public var superseded: JournalReference?
  }
}

extension Verdict {
  private enum Part {
    static let presence: UInt8 = 8
    static let revision: UInt8 = 16
    static let other: UInt8 = 32
    static let verdict: UInt8 = 7
  }

  /// Reads what follows one of the verdicts in the script's answer, which is on a request with this revision; nil for what the script never
  /// says.
  init?(_ first: UInt8, _ reader: inout ByteReader, revision: Revision) {
    if first == 7 {
      guard let count = reader.byte(), let reason = reader.bytes(Int(count)) else { return nil }
      self = .unreadable(String(decoding: reason, as: UTF8.self))
      return
    }
    var application = Application(revision: revision)
    if first & Part.presence != 0 {
      guard let bytes = reader.bytes(Presence.byteCount), let presence = Presence(bytes) else { return nil }
      application.presence = presence
    }
    if first & Part.revision != 0 {
      guard let bytes = reader.bytes(Revision.byteCount), let revision = Revision(bytes: bytes) else { return nil }
      application.revision = revision
    }
    if first & Part.other != 0 {
      guard let revision = reader.bytes(Revision.byteCount).flatMap({ Revision(bytes: $0) }),
        let id = reader.bytes(NotificationID.byteCount).flatMap({ NotificationID(bytes: $0) })
      else { return nil }
      application.superseded = JournalReference(revision: revision, id: id)
    }
    switch first & Part.verdict {
    case 0:
      guard let by = application.superseded else { return nil }
      self = .stale(by: by)
    case 1: self = .new(application)
    case 2: self = .again(application)
    case 3: self = .duplicate
    case 4: self = .wrongUser
    case 5: self = .unregistered
    default: self = .wrongApplication
    }
  }
}
