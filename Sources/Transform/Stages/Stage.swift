import Calendars
import Notifications
import Store

/// A stage that a request passes before it is judged, and that may answer later.
///
/// `Pipeline` lists the stages, and nothing else knows of them. Records of one target pass a stage side by side. They are judged in their
/// order, and no other target waits for them (`TargetQueues`). A record that is started again passes its stages again, so a stage that answers
/// only once remembers its answer.
protocol Stage: AnyObject {
  /// The owner that gets the answers; set when the stage is listed, and held weakly.
  var owner: (any StageOwner)? { get set }

  /// Whether each request has to be shown to the stages. Those with a job for one are shown in any case, and so are all while one is parked.
  /// Read once for the records of a turn.
  var isActive: Bool { get }

  /// Takes a request. A stage that answers later keeps the content, and hands it to its owner by this handle; never during this call.
  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer

  /// All requests of the turn were shown: the stage asks for what they need together.
  func flush()

  /// Drops records whose assignment is over. A later answer for them would change nothing.
  func drop(_ records: Set<ParkedRecord>)

  /// Closes what the stage holds. It is not used any more.
  func close() async
}

extension Stage {
  func flush() {}
  func close() async {}
}

/// A stage's answer for a request.
enum StageAnswer {
  /// The request continues with this content, the same or another.
  case pass(RequestContent)
  /// The request waits. The stage tells its owner when it may continue.
  case later
}

/// Gets the answers of a stage.
protocol StageOwner: AnyObject {
  /// Requests that have waited continue with these contents.
  func passed(_ requests: [(record: ParkedRecord, content: RequestContent)])
  /// A stage keeps a request, with this content so far. A retry begins with it.
  func keep(_ record: ParkedRecord, _ content: RequestContent)
  /// A call to Redis has failed for a request, which is started again.
  func failed(_ record: ParkedRecord, _ error: StoreError)
}

/// A request as the stages hand it on: what its devices get, and which devices these are.
///
/// Its bytes lie in the arena of its batch. A stage that changes it writes another entry there.
struct RequestContent {
  let arena: Arena
  var entry: RequestEntry
  let receiver: Receiver
  /// Whether its service extensions may change what is shown.
  var mutability: Mutability

  /// Whether a request's service extensions may change what is shown.
  enum Mutability {
    /// They may not: `mutable-content` is not 1, or there is no text.
    case fixed
    /// They may.
    case mutable
    /// They might, but a process has crashed with the request.
    case suspected
  }

  /// The service extensions that the request has passed, for the journal.
  var extensions = PassedExtensions()
  /// The results of the slow service extensions, if there are any.
  var called: CalledExtensions?
  /// The stop of its application during which the request was published. Such a request goes to no device.
  var stop: ApplicationStop?
  /// The request's job for the schedules, if it has one.
  var schedule: ScheduleJob?
  /// The hash of its target.
  var targetHash: UInt64 { arena.bytes.withUnsafeBytes { receiver.targetHash(in: $0) } }
  /// Whether it has a job for the schedules, or gets one where something is pending under its identifier.
  var concernsSchedules: Bool { schedule != nil || entry.mayReplace }
  /// The time zone whose devices it is for: of an occurrence that is due at a wall time. Nil: it is for all.
  ///
  /// The last occurrence is for all: a device may have moved between two zones so that it was in neither at its time. The other devices have
  /// its apns-id.
  var zone: Name? {
    guard let schedule, let firing = schedule.firing, firing.dueTime.zone != "" else { return nil }
    return schedule.hadLastOccurrence ? nil : firing.dueTime.zone
  }
  /// The contents for a person's devices; nil where all devices get the same.
  var variants: ContentVariants?
}

/// The service extensions that a request has passed, encoded for the journal, in the request's arena.
struct PassedExtensions {
  var span = ArenaSpan()
  var count = 0
}
