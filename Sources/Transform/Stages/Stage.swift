import Notifications
import Store

/// A stage that a request passes between being read and being judged, and that may answer later: it is listed where `Pipeline` makes its
/// stages, and nothing else knows of it. Loop-confined.
///
/// Records of one target pass a stage side by side; they are judged in their order, and nobody else's target waits for them (`Flow`). A
/// record that is started again passes its stages again, so a stage that is to answer only once remembers what it has answered.
protocol Stage: AnyObject {
  /// Whom it tells, weakly; set when the stage is listed.
  var owner: (any StageOwner)? { get set }

  /// Whether it may have to be asked at present: as long as no stage is active, a request is judged without a look at any of them. Asked
  /// once for the records of a turn.
  var isActive: Bool { get }

  /// Takes a request. A stage that answers later keeps the content, and hands it to its owner by this handle; never during this call.
  func take(_ record: Flow.Parked, _ content: RequestContent) -> StageAnswer

  /// All requests that there are now were shown: what is asked for them together is asked for.
  func flush()

  /// Lets go of records whose assignment is over: an answer for them would be nothing.
  func drop(_ records: Set<Flow.Parked>)

  /// Ends what it holds; nothing is asked of it any more.
  func close() async
}

extension Stage {
  func flush() {}
  func close() async {}
}

/// What a stage says of a request that it is given.
enum StageAnswer {
  /// It goes on with this content, the same or another.
  case pass(RequestContent)
  /// The stage tells its owner when it may go on.
  case later
}

/// Whom a stage tells.
protocol StageOwner: AnyObject {
  /// Requests that were to be answered later go on with these contents.
  func passed(_ requests: [(record: Flow.Parked, content: RequestContent)])
  /// What a stage has made of a request that it still has is kept, should the request be started again.
  func keep(_ record: Flow.Parked, _ content: RequestContent)
  /// A stage has not got what it needs of Redis: the request is started again.
  func failed(_ record: Flow.Parked, _ error: StoreError)
}

/// A request as the stages hand it on: what its devices get, and who they are. It lies in the arena of its batch, into which a stage that
/// changes it writes another entry.
struct RequestContent {
  /// Where a request goes.
  enum Receiver {
    /// To the device of this token.
    case device(ArenaSpan)
    /// To a person's devices that have the application.
    case person(ArenaSpan, application: ArenaSpan)
  }

  let arena: Arena
  var entry: RequestEntry
  let receiver: Receiver
  /// Whether its service extensions may change what is shown.
  var mutability: Mutability

  /// Whether a request's service extensions may change what is shown.
  enum Mutability {
    /// It is not mutable: `mutable-content` is not 1, or there is no text.
    case fixed
    /// It passes them.
    case mutable
    /// It would pass them, but a process has ended over it.
    case suspected
  }

  /// The service extensions that it has passed, for the journal.
  var extensions = PassedExtensions()
  /// What the extensions that take their time have made of it; nil where there are none.
  var called: CalledExtensions?
  /// The stop of its application during which it was published: it goes to no device.
  var stop: ApplicationStop?
  /// What a person's devices get, where it is not the same for all of them; nil where it is.
  var variants: ContentVariants?
}

/// The service extensions that a request has passed, as the journal's entry has them, in the arena of its request.
struct PassedExtensions {
  var span = ArenaSpan()
  var count = 0
}
