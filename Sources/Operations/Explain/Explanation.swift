package import Notifications

/// All statements of the topics about one request.
package struct Explanation: Sendable, Equatable {
  /// The request.
  package var id: NotificationID
  /// Its records in the requests topic: several if it was published again.
  package var requests: [PublishedRequest] = []
  /// Its history, in the order of time.
  package var steps: [TimelineStep] = []
  /// How it stands at each known device, in the order of appearance.
  package var devices: [DeviceOutcome] = []
  /// How it stands as a whole.
  package var state: RequestState = .unknown
  /// For a request without a recipient: the applications that its target has devices for, with the number of devices. Nil for all others.
  package var registered: [Name: Int]?
  /// For a request whose trigger is due at a time: its schedule, and what became of the occurrences. Nil for all others.
  package var schedule: ScheduleExplanation?
  /// For an occurrence: the schedule that fired it. Nil for all others.
  package var occurrence: FiredOccurrence? { firing?.firing }
  /// For an occurrence: the record that fired it. Nil for all others.
  ///
  /// Anybody can write a firing with any due time. So one that took no effect counts only if none did.
  package var firing: PublishedRequest? {
    func rank(_ request: PublishedRequest) -> (Int, Int64) { (request.isIgnored ? 1 : 0, request.firing?.due ?? 0) }
    return requests.filter { $0.firing != nil }.min { rank($0) < rank($1) }
  }
  /// The applications that its records and events name: several if another one has published with its apns-id.
  package var applications: Set<Name> = []
  /// Whether anything was found.
  package var isFound: Bool { !steps.isEmpty }
}

/// A request in its record.
package struct PublishedRequest: Sendable, Equatable {
  /// Its apns-id, given or derived.
  package var id: NotificationID
  /// The record's place.
  package var source: SourceCoordinates
  /// `device:…`, `user:…`, or the invalid text.
  package var target: Name
  /// The application's bundle id, or the `apns-topic` of an invalid request.
  package var application: Name?
  /// The collapse id, or the identifier that a removal names; nil if the apns-id is the identifier.
  package var identifier: Name?
  /// Whether the apns-id was derived from the record's place.
  package var isDerivedID: Bool
  /// `notify`, `remove` or `cancel`; nil for an invalid request.
  package var operation: String?
  /// When it expires, in milliseconds since 1970; nil for an invalid request.
  package var end: Int64?
  /// The rule that it breaks, by this program's settings.
  package var broken: String?
  /// The place of its first record, if it was published again.
  package var origin: SourceCoordinates?
  /// The schedule that its trigger makes, if that is due at a time.
  package var schedule: ScheduleKey?
  /// The occurrence that it fires.
  package var firing: FiredOccurrence?
  /// Whether it is a firing that took no effect, as the journal says.
  package var isIgnored = false
  /// The paths of unknown fields. They are headers that begin with `apns-`, and the first such member of `aps`.
  package var unknown: [String] = []
}

/// One step of a timeline.
package struct TimelineStep: Sendable, Equatable {
  /// Its name. From a record: `published`, `routed`, `dead letter`, `redriven`, `discarded`, or the type of an event. From the journal:
  /// `queued`, `scheduled`, `ignored` for a firing that took no effect, `left out`, `extensions`, or `replaced` by a newer revision without an event.
  package var name: String
  /// Its time in milliseconds since 1970; nil if the record has none.
  package var time: Int64?
  /// The record's topic.
  package var topic: String
  /// The record's partition.
  package var partition: Int32
  /// The record's offset.
  package var offset: Int64
  /// Its device.
  package var device: String?
  /// Its worker.
  package var worker: Name?
  /// Further details: names and values.
  package var details: [Detail] = []
  /// Whether an earlier event has the same id.
  package var isRepeat = false
  /// Milliseconds since the step before it in the order of time.
  package var sincePrevious: Int64?
  /// Milliseconds since the request was published.
  package var sincePublication: Int64?
  /// What became of the request, at the device or as a whole, as an event or the journal says; nil for any other step.
  package var outcome: Outcome?

  /// A detail of a step.
  package struct Detail: Sendable, Equatable {
    /// Its name.
    package var name: String
    /// Its value.
    package var value: String
  }
}

/// How a request stands at one device.
package struct DeviceOutcome: Sendable, Equatable {
  /// The device's token.
  package var device: String
  /// The final outcome, or that it is `queued` or `scheduled`.
  package var outcome: Outcome
  /// It is not final, and its end is past.
  package var isOverdue = false
  /// When that was told, in milliseconds since 1970.
  package var time: Int64?
  /// Milliseconds since the publication.
  package var sincePublication: Int64?

  /// Whether it says what became of the request, and not that there is something to come.
  package var isFinal: Bool { outcome.finalOutcome != nil }

  /// The word for it.
  package var word: String { isOverdue ? "overdue" : outcome == .wrongUser ? "leftOut" : outcome.name }
}

/// How a request stands.
package enum RequestState: Sendable, Equatable {
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
  /// It waits for its time, or did: its schedule says more.
  case scheduled
  /// It has ended as a whole, and went to no device.
  case settled(Outcome)
  /// Each device has an outcome.
  case ended
}
