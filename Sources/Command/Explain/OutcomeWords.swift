import Notifications

extension Outcome {
  /// What `explain` and `audit` say of a request at a device.
  ///
  /// - Parameter after: how long after its publication that was told, behind a space; empty where that is not known.
  func sentence(_ after: String) -> String {
    switch self {
    case .delivered: "delivered\(after)"
    case .updated: "delivered\(after), in place of an older one"
    case .removed: "the removal was acknowledged\(after)"
    case .collapsed: "collapsed\(after): a newer one took its place"
    case .expired: "expired\(after)"
    case .evicted: "evicted\(after): the mailbox was full"
    case .filtered: "filtered\(after)"
    case .duplicate: "a duplicate: the device had this apns-id from another record"
    case .unregistered: "unregistered: there is no such device"
    case .canceled: "canceled\(after)"
    case .rejected: "rejected\(after)"
    case .wrongUser: "left out: the device is not the person's, or was not when it was published"
    case .queued: "queued\(after), and waits for the device"
    case .scheduled: "scheduled\(after), and waits for its time"
    case .carriedOut: "carried out\(after): it canceled what was pending"
    // None of these is how a request stands with a device.
    case .wrongApplication, .deadLettered, .replayed, .unreadable, .addressed, .response, .dismissed, .registered, .settingsChanged,
      .unregisteredDevice:
      name
    }
  }
}
