import Notifications

extension Outcome {
  /// What `explain` says of a request at a device.
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
    case .rejected: "rejected\(after): its bytes were changed while it waited"
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

  /// How `audit` counts requests that ended so, one for each device: the key in JSON, and the words behind the number; nil for what it never
  /// counts.
  var counted: (key: String, words: String)? {
    switch self {
    case .delivered: ("delivered", "delivered")
    case .updated: ("updated", "delivered in place of an older one")
    case .removed: ("removed", "removals that their devices acknowledged")
    case .collapsed: ("collapsed", "collapsed: a newer one took their place")
    case .expired: ("expired", "expired")
    case .evicted: ("evicted", "evicted from a full mailbox")
    case .filtered: ("filtered", "filtered")
    case .duplicate: ("duplicate", "suppressed: the same request had come before")
    case .unregistered: ("unregistered", "unregistered: there is no such device")
    case .canceled: ("canceled", "canceled")
    case .rejected: ("rejected", "rejected")
    case .deadLettered: ("dead", "in the dead letters")
    case .replayed: ("replayed", "replayed, and applied before what is audited")
    case .queued: ("pending", "pending: they wait for their devices")
    case .scheduled: ("scheduled", "scheduled: each occurrence is a request of its own")
    case .carriedOut: ("carriedOut", "carried out: they canceled what was pending")
    case .wrongApplication, .wrongUser, .unreadable, .addressed, .response, .dismissed, .registered, .settingsChanged,
      .unregisteredDevice:
      nil
    }
  }
}
