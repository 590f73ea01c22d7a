public import Notifications

/// The verdict of the judge script on one request for one device.
public enum Verdict {
  /// A newer revision of the same collapse id is known.
  case stale(by: JournalReference)
  /// It is in the mailbox now. After its expiration it is only remembered.
  case new(Application)
  /// This same record was applied before. Everything is emitted and done again as at the first time.
  case again(Application)
  /// The same apns-id came before from another record.
  case duplicate
  /// The device does not belong to the target's user, or did not yet when the request was published.
  case wrongUser
  /// No such device is registered.
  case unregistered
  /// The device is registered for another application.
  case wrongApplication
  /// The device's data in Redis cannot be read, so nothing was applied.
  case unreadable(String)

  /// The result of applying a request.
  public struct Application {
    /// The device's connection; nil if it is not connected, or if the entry has left the mailbox.
    public var presence: Presence?
    /// The revision of the entry, which the judge may have raised.
    public var revision: Revision
    /// The older revision that it replaced in the mailbox, and its apns-id.
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

  /// Reads the details of a verdict on a request with this revision; nil for a verdict that the script never gives.
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
