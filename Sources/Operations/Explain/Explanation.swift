public import Notifications

/// All statements of the topics about one request.
public struct Explanation: Sendable, Equatable {
  /// The request.
  public var id: NotificationID
  /// Its records in the requests topic: several if it was published again.
  public var requests: [PublishedRequest] = []
  /// Its history, in the order of time.
  public var steps: [TimelineStep] = []
  /// How it stands at each known device, in the order of appearance.
  public var devices: [DeviceOutcome] = []
  /// How it stands as a whole.
  public var state: RequestState = .unknown
  /// For a request without a recipient: the applications that its target has devices for. Nil for all others.
  public var registered: [RegisteredApplication]?
  /// Whether anything was found.
  public var isFound: Bool { !steps.isEmpty }

  /// Makes an explanation without records.
  public init(id: NotificationID) { self.id = id }
}

/// A request in its record.
public struct PublishedRequest: Sendable, Equatable {
  /// Its apns-id, given or derived.
  public var id: NotificationID
  /// The record's place.
  public var source: SourceCoordinates
  /// `device:…`, `user:…`, or the invalid text.
  public var target: Name
  /// The application's bundle id, or the `apns-topic` of an invalid request.
  public var application: Name?
  /// The collapse id, or the identifier that a removal names; nil if the apns-id is the identifier.
  public var identifier: Name?
  /// Whether the apns-id was derived from the record's place.
  public var isDerivedID: Bool
  /// `notify` or `remove`; nil for an invalid request.
  public var operation: String?
  /// When it expires, in milliseconds since 1970; nil for an invalid request.
  public var end: Int64?
  /// The rule that it breaks, by this program's settings.
  public var broken: String?
  /// The place of its first record, if it was published again.
  public var origin: SourceCoordinates?
  /// The paths of unknown fields. They are headers that begin with `apns-`, and the first such member of `aps`.
  public var unknown: [String] = []
}

/// One step of a timeline.
public struct TimelineStep: Sendable, Equatable {
  /// Its name. From a record: `published`, `routed`, `dead letter`, `redriven`, `discarded`, or the type of an event. From the journal:
  /// `queued`, `scheduled`, `left out`, `extensions`, or `replaced` by a newer revision without an event.
  public var name: String
  /// Its time in milliseconds since 1970; nil if the record has none.
  public var time: Int64?
  /// The record's topic.
  public var topic: String
  /// The record's partition.
  public var partition: Int32
  /// The record's offset.
  public var offset: Int64
  /// Its device.
  public var device: String?
  /// Its worker.
  public var worker: Name?
  /// Further details: names and values.
  public var details: [Detail] = []
  /// Whether an earlier event has the same id.
  public var isRepeat = false
  /// Milliseconds since the step before it in the order of time.
  public var sincePrevious: Int64?
  /// Milliseconds since the request was published.
  public var sincePublication: Int64?
  /// The event's type; nil if it is not an event.
  public var type: EventType?

  /// A detail of a step.
  public struct Detail: Sendable, Equatable {
    /// Its name.
    public var name: String
    /// Its value.
    public var value: String
  }
}

/// How a request stands at one device.
public struct DeviceOutcome: Sendable, Equatable {
  /// The states of a request at a device.
  public enum State: String, Sendable {
    /// It is in the mailbox. It is shown when the device connects, or expires.
    case queued
    /// It was in the mailbox at the last step, and has expired since.
    case overdue
    /// The device has it.
    case delivered
    /// The device has it in place of an older one.
    case updated
    /// The device has removed the notifications that it names.
    case removed
    /// A newer one replaced it.
    case collapsed
    /// It expired.
    case expired
    /// The mailbox was full.
    case evicted
    /// It was filtered out.
    case filtered
    /// Its bytes were damaged while it waited for the device.
    case rejected
    /// The device had the same apns-id from another record.
    case duplicate
    /// The device is not registered.
    case unregistered
    /// The device belongs to another person now, or did when the request was published.
    case leftOut
    /// Only a response or the like is known.
    case other

    /// Whether it is an outcome, so that nothing more is expected.
    public var isOutcome: Bool { ![.queued, .overdue, .other].contains(self) }
  }

  /// The device's token.
  public var device: String
  /// Its state.
  public var state: State
  /// The time of the state, in milliseconds since 1970.
  public var time: Int64?
  /// Milliseconds since the publication.
  public var sincePublication: Int64?
}

/// How a request stands.
public enum RequestState: Sendable, Equatable {
  /// Nothing was found.
  case unknown
  /// It was published. Nothing more is known: no worker has processed it yet, it is lost, or its events are deleted.
  case unprocessed
  /// It breaks a rule, with Apple's reason.
  case rejected(String)
  /// It is in the dead letters for another reason.
  case dead(String)
  /// It went to no device, because its application was stopped.
  case filtered(String)
  /// It has no recipient: no device is registered.
  case unregistered
  /// This many devices have no outcome yet. Each will have one by its end, in milliseconds since 1970, if that is known.
  case underWay(open: Int, of: Int, end: Int64?)
  /// Each device has an outcome.
  case ended
}
