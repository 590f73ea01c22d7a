public import Notifications

/// Everything that the topics say about one request.
public struct Explanation: Sendable, Equatable {
  /// The request.
  public var id: NotificationID
  /// The records with this id in the requests topic: more than one when it was published again.
  public var requests: [PublishedRequest] = []
  /// What happened, in the order of time.
  public var steps: [TimelineStep] = []
  /// How it stands with each device that is known, in the order in which they came up.
  public var devices: [DeviceOutcome] = []
  /// How it stands with the request as a whole.
  public var state: RequestState = .unknown
  /// Of a request that found no device of its application: for which ones its target has devices now. Nil of all others.
  public var registered: [RegisteredApplication]?
  /// Whether there is anything to tell.
  public var isFound: Bool { !steps.isEmpty }

  /// An explanation without anything found.
  public init(id: NotificationID) { self.id = id }
}

/// A request as it stands in its record.
public struct PublishedRequest: Sendable, Equatable {
  /// Its apns-id, given or derived.
  public var id: NotificationID
  /// Where it lies.
  public var source: SourceCoordinates
  /// `device:…`, `user:…`, or whatever was given instead.
  public var target: Name
  /// The application's bundle id, or the `apns-topic` of one that breaks a rule.
  public var application: Name?
  /// The collapse id, or what a removal removes; nil when the apns-id is the identifier.
  public var identifier: Name?
  /// Whether the apns-id was derived from where the record lies.
  public var isDerivedID: Bool
  /// `notify` or `remove`; nil for one that breaks a rule.
  public var operation: String?
  /// From when it may not be shown, in milliseconds since 1970; nil for one that breaks a rule.
  public var end: Int64?
  /// The rule that it breaks, by this program's settings.
  public var broken: String?
  /// Where it came from first, when it came again from elsewhere.
  public var origin: SourceCoordinates?
  /// The paths of what no rule knows: headers that begin with `apns-`, and the first such member of `aps`.
  public var unknown: [String] = []
}

/// One thing that happened.
public struct TimelineStep: Sendable, Equatable {
  /// What: `published`, `routed`, `dead letter`, `redriven` or `discarded` as a dead letter was, the type of an event; `queued`, `scheduled`, `left out` or `extensions` as the journal says; or `replaced`
  /// where only the journal says of a newer revision that it took its place.
  public var name: String
  /// When, in milliseconds since 1970; nil when the record has no time.
  public var time: Int64?
  /// Where it is written.
  public var topic: String
  /// The record's partition.
  public var partition: Int32
  /// The record's offset.
  public var offset: Int64
  /// On which device.
  public var device: String?
  /// Which worker told it.
  public var worker: Name?
  /// What else it says: names and values.
  public var details: [Detail] = []
  /// The same was told before, by an event with the same id.
  public var isRepeat = false
  /// Milliseconds since the step before it in the order of time.
  public var sincePrevious: Int64?
  /// Milliseconds since the request was published.
  public var sincePublication: Int64?
  /// The event's type; nil for what is no event.
  public var type: EventType?

  /// One of the further things that a step says.
  public struct Detail: Sendable, Equatable {
    /// Its name.
    public var name: String
    /// Its value.
    public var value: String
  }
}

/// How it stands with a request on one device.
public struct DeviceOutcome: Sendable, Equatable {
  /// The states that there are.
  public enum State: String, Sendable {
    /// In the mailbox: it is shown when the device connects, or expires.
    case queued
    /// In the mailbox when it was last heard of, and past its end.
    case overdue
    /// The device has it.
    case delivered
    /// The device has it in place of an older one.
    case updated
    /// What it was to remove is removed.
    case removed
    /// A newer one took its place.
    case collapsed
    /// It came too late.
    case expired
    /// The mailbox was full.
    case evicted
    /// It was not wanted.
    case filtered
    /// Its bytes were changed while it waited for the device.
    case rejected
    /// The device had the same apns-id from another record.
    case duplicate
    /// The device is not registered.
    case unregistered
    /// The device belongs to somebody else by now, or belonged to somebody else when the request was published.
    case leftOut
    /// Nothing but a response or the like is known.
    case other

    /// Whether it says what became of the request, and not that there is something to come.
    public var isOutcome: Bool { ![.queued, .overdue, .other].contains(self) }
  }

  /// The device's token.
  public var device: String
  /// Its state.
  public var state: State
  /// When that was told, in milliseconds since 1970.
  public var time: Int64?
  /// Milliseconds since the publication.
  public var sincePublication: Int64?
}

/// How it stands with a request.
public enum RequestState: Sendable, Equatable {
  /// Nothing was found.
  case unknown
  /// It was published, and nothing more is known: the workers have not come to it, or it was lost, or its events are gone.
  case unprocessed
  /// It breaks a rule: with Apple's reason.
  case rejected(String)
  /// It lies in the dead letters, for another reason.
  case dead(String)
  /// It went to no device, for this reason: its application was stopped.
  case filtered(String)
  /// It was for nobody: no device is registered.
  case unregistered
  /// For so many of so many devices there is no outcome yet; there will be one by its end, in milliseconds since 1970, if that is known.
  case underWay(open: Int, of: Int, end: Int64?)
  /// Each device has an outcome.
  case ended
}
