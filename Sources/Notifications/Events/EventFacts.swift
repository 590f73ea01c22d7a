/// What happened, borrowed from the record, the session or the mailbox entry that it happened to.
///
/// Fields that are not known stay empty, and the event does not have them.
public struct EventFacts {
  /// What happened: one that has an event.
  public var type: Outcome
  /// The request's id; `nil` for an event about a device.
  public var id: NotificationID?
  /// The request's identifier; none when it is the id's text.
  public var identifier: UnsafeRawBufferPointer = .none
  /// The device token.
  public var device: UnsafeRawBufferPointer = .none
  /// The request's target, for an event without a device.
  public var target: UnsafeRawBufferPointer = .none
  /// The application's bundle id.
  public var application: UnsafeRawBufferPointer = .none
  /// The user.
  public var user: UnsafeRawBufferPointer = .none
  /// Where the request came from first.
  public var source: SourcePosition?
  /// The topic it came from first; none when it is the configured one.
  public var sourceTopic: UnsafeRawBufferPointer = .none
  /// The revision, as it stands in the mailbox.
  public var revision: Revision?
  /// The trace context.
  public var traceparent: UnsafeRawBufferPointer = .none
  /// The service extensions that the notification has passed, as ``ExtensionStates``.
  public var extensions: UnsafeRawBufferPointer = .none
  /// What only this type has.
  public var details = EventDetails.none
  /// What tells two happenings of the same type, request, device and source apart; a response's id does so by itself.
  public var discriminator: UnsafeRawBufferPointer = .none

  /// An event without anything known.
  public init(_ type: Outcome) { self.type = type }

  /// An event of a request, no device being known yet.
  public init(_ type: Outcome, of request: RequestEnvelope) {
    self.type = type
    id = request.id
    identifier = request.collapseID
    target = request.target
    application = request.application
    source = request.source
    revision = request.revision
    traceparent = request.traceparent
  }

  /// An event of a request, whose application is known.
  public init(_ type: Outcome, of request: RequestView) {
    self.init(type, of: request.envelope)
    application = request.application
    if let user = request.target.user { self.user = user }
  }

  /// An event of what a mailbox or a delivery record holds, on its device.
  public init(_ type: Outcome, of entry: DeliveryEntryView, device: UnsafeRawBufferPointer, revision: Revision?) {
    self.type = type
    id = entry.id
    identifier = entry.collapseID
    self.device = device
    application = entry.application
    source = entry.source
    sourceTopic = entry.sourceTopic
    self.revision = revision
    traceparent = entry.traceparent
    extensions = entry.extensions
  }

  /// An event of what a receipt names.
  public init(_ type: Outcome, of receipt: ReceiptView, device: UnsafeRawBufferPointer) {
    self.type = type
    id = receipt.id
    identifier = receipt.collapseID
    self.device = device
    application = receipt.application
    source = receipt.source
    sourceTopic = receipt.sourceTopic
    revision = receipt.revision
    traceparent = receipt.traceparent
  }
}

/// What an event has beyond the members that all have.
public enum EventDetails {
  /// Nothing more.
  case none
  /// `devices`: for how many devices the request is.
  case addressed(devices: Int)
  /// `reason`, `field`, `rule`, and `offset` where it is known.
  case rejected(Rejection)
  /// `by.apnsId`: the notification that takes its place, or that removes it.
  case by(NotificationID)
  /// `reason`: a word or a sentence of the program's own.
  case reason(StaticString)
  /// `skipped`: how many occurrences are told together that came too late.
  case skipped(Int)
  /// `reason`: that the application is stopped, and `detail`: why, as a person wrote it; none where nothing was written.
  case stopped(UnsafeRawBufferPointer)
  /// `response`, `action`, `userText`, `at`, `dynamic`: what the person did, when by the device's clock, in milliseconds, told as no later
  /// than the event itself, and whether only the device says that there was such an action.
  case response(
    UnsafeRawBufferPointer, action: UnsafeRawBufferPointer, userText: UnsafeRawBufferPointer?, at: Int64?, isDynamic: Bool = false)
  /// `registration`: the record of the device, as JSON.
  case registration(UnsafeRawBufferPointer)
}
