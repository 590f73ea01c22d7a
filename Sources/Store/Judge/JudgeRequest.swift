public import Notifications

/// One request for one device, to be judged.
public struct JudgeRequest {
  /// What the caller knows it by.
  public let tag: Int32
  /// Has the token and the entry.
  public let arena: Arena
  /// The device's token.
  public let token: ArenaSpan
  /// The bucket that its keys lie in; the judge sees to it.
  var bucket = 0
  /// What the device gets.
  public let entry: RequestEntry
  /// It has expired already when it is judged; the judge sees to it.
  public internal(set) var isExpired = false

  /// A request from its parts.
  public init(tag: Int32, in arena: Arena, token: ArenaSpan, _ entry: RequestEntry) {
    (self.tag, self.arena, self.token, self.entry) = (tag, arena, token, entry)
  }
}

/// A request's delivery entry, which is the same for all of its devices, and what the judge needs to know beside it.
public struct RequestEntry {
  /// Where the arena has the entry.
  public var span: ArenaSpan
  /// What the device is to do.
  public var kind: DeliveryEntry.Kind
  /// Where the arena has the collapse id; nothing where the request has none.
  public var collapseID: ArenaSpan
  /// The stable hash of the application.
  public var application: UInt64
  /// The stable hash of the person, where the request is for one.
  public var user: UInt64
  /// When it was published: milliseconds since 1970.
  public var time: Int64
  /// Where a removal names a notification by its apns-id.
  public var withdraws: NotificationID?
  /// What the window of recent ids remembers: of the apns-id.
  public var id: UInt64
  /// What the window of recent ids remembers: of where the record lies.
  public var source: UInt32
  /// When it expires: seconds since 1970.
  public var end: Int64
  /// Its revision, as its record has it.
  public var revision: Revision
  /// Why it comes again; nil for a record without an origin.
  public var comesAgain: ComesAgain?

  /// Why a request comes again: what of it must be remembered to make it a repeat, where the mailbox has no entry of it.
  public enum ComesAgain: UInt8, Sendable {
    /// A replay: its id or its collapse id.
    case replayed = 1
    /// New work: its id among the recent ones.
    case redriven = 2
    /// New work that is never a repeat: somebody has found that the device has no outcome of it.
    case unfinished = 3
  }

  /// An entry from its parts.
  public init(
    span: ArenaSpan, kind: DeliveryEntry.Kind, collapseID: ArenaSpan, application: UInt64, user: UInt64, time: Int64,
    withdraws: NotificationID?, id: UInt64, source: UInt32, end: Int64, revision: Revision
  ) {
    self.span = span
    self.kind = kind
    self.collapseID = collapseID
    self.application = application
    self.user = user
    self.time = time
    self.withdraws = withdraws
    self.id = id
    self.source = source
    self.end = end
    self.revision = revision
  }
}
