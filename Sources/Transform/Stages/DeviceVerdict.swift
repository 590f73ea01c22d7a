import Notifications
import Store

/// What a verdict of the judge on a request for one device comes to, beside the journal.
struct DeviceVerdict {
  /// What is emitted.
  enum Emission {
    case nothing
    case event(EventType)
    /// The event, and the request's dead letter.
    case rejection
  }

  /// Its name in the metrics.
  let name: String
  let emission: Emission
  /// What became of the record, where it is for this device alone.
  let record: RecordVerdict?

  private init(_ name: String, _ emission: Emission, _ record: RecordVerdict?) {
    (self.name, self.emission, self.record) = (name, emission, record)
  }

  /// The table: what the journal says of a request at a device, and what follows from it. Nil for what it never says of a device.
  init?(_ verdict: JournalVerdict) {
    switch verdict {
    case .kept: self.init("queued", .nothing, .queued)
    case .expired: self.init("expired", .event(.expired), .expired)
    case .stale: self.init("collapsed", .event(.collapsed), .collapsed)
    case .duplicate: self.init("duplicate", .event(.duplicate), .duplicate)
    case .unregistered: self.init("unregistered", .event(.unregistered), .unregistered)
    case .wrongUser: self.init("other_user", .nothing, nil)
    case .wrongApplication: self.init("wrong_application", .rejection, .rejected)
    case .filtered, .rejected, .deadLettered, .scheduled, .unreadable, .applied: return nil
    }
  }
}

extension JournalJudgement {
  /// What the journal says of a verdict; nil where nothing was applied.
  ///
  /// - Parameter own: the revision of the request itself.
  init?(_ verdict: Verdict, own: Revision, isExpired: Bool) {
    switch verdict {
    case .new(let application), .again(let application):
      self.init(isExpired ? .expired : .kept, revision: application.revision, other: application.superseded)
    case .stale(let by): self.init(.stale, revision: own, other: by)
    case .duplicate: self.init(.duplicate, revision: own)
    case .wrongUser: self.init(.wrongUser, revision: own)
    case .unregistered: self.init(.unregistered, revision: own)
    case .wrongApplication: self.init(.wrongApplication, revision: own)
    case .unreadable: return nil
    }
  }
}
