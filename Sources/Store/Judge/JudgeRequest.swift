public import Notifications

/// One request for one device, to be judged.
public struct JudgeRequest {
  /// The caller's number for it.
  public let tag: Int32
  /// The arena that contains the token and the entry.
  public let arena: Arena
  /// The device's token.
  public let token: ArenaSpan
  /// The bucket of its keys; set by the judge.
  var bucket = 0
  /// The entry for the device.
  public let entry: RequestEntry
  /// Whether it had expired when it was judged; set by the judge.
  var isExpired = false

  /// A request of its parts.
  public init(tag: Int32, in arena: Arena, token: ArenaSpan, _ entry: RequestEntry) {
    (self.tag, self.arena, self.token, self.entry) = (tag, arena, token, entry)
  }
}

/// A request's delivery entry and what the judge needs to know beside it. The same for all devices.
public struct RequestEntry {
  /// The span of the entry in the arena.
  public var span: ArenaSpan
  /// What the device does with the entry.
  public var kind: DeliveryEntry.Kind
  /// The span of the collapse id; empty if the request has none.
  var collapseID: ArenaSpan
  /// The name hash of the application.
  public var application: UInt64
  /// The name hash of the person it is for; 0 if it is for the device, whose ever that is.
  var user: UInt64
  /// The time of publication, in milliseconds since 1970.
  var time: Int64
  /// The apns-id of the notification that a removal names, if it names one so.
  var withdraws: NotificationID?
  /// The hash of the apns-id.
  public var id: UInt64
  /// The hash of the apns-id that the window of recent ids remembers: see ``RequestView/rememberedID``.
  var rememberedID: UInt64
  /// The hash of the record's place, for the window of recent ids.
  var source: UInt32
  /// The expiration, in seconds since 1970.
  public var end: Int64
  /// The request's revision, or the bound of a removal.
  public var revision: Revision
  /// Whether it removes all notifications of the device's application.
  public var removesAll = false
  /// Whether it is a removal that takes nothing newer than its revision, which is that of the notification it removes.
  public var isBounded = false
  /// Whether it is a location request, which waits on its device for a place, or a removal of such: no removal of all touches it.
  public var isOfPending = false
  /// Why the record is published again as new work; nil for a record without an origin.
  public var redrive: Redrive?
  /// Whether it takes the place of what is pending for the device under its identifier, and the schedules have not been asked.
  public var mayReplace = false
  /// Whether the device had it before Redis was rebuilt. Then its apns-id is remembered though it is stale now.
  public var wasKept = false

  /// Why a request is published again. It decides which memory of the device makes the request a repeat.
  public enum Redrive: UInt8, Sendable {
    /// It is a repeat if its id is in the window of recent ids.
    case redriven = 1
    /// It is a repeat only if the mailbox has it. A tool has found that the device has no outcome of it.
    case unfinished = 2
  }

  /// An entry of its parts.
  public init(
    span: ArenaSpan, kind: DeliveryEntry.Kind, collapseID: ArenaSpan, application: UInt64, user: UInt64, time: Int64,
    withdraws: NotificationID?, id: UInt64, rememberedID: UInt64? = nil, source: UInt32, end: Int64, revision: Revision
  ) {
    self.span = span
    self.kind = kind
    self.collapseID = collapseID
    self.application = application
    self.user = user
    self.time = time
    self.withdraws = withdraws
    self.id = id
    self.rememberedID = rememberedID ?? id
    self.source = source
    self.end = end
    self.revision = revision
  }
}
