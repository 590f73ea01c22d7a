/// The facts of an event, borrowed from a record, a session or a mailbox entry.
///
/// The event has no members for empty fields.
public struct EventFacts {
  /// The outcome, which has an event.
  public var type: Outcome
  /// The request's id; `nil` for an event about a device.
  public var id: NotificationID?
  /// The request's identifier; empty if it is the id's text.
  public var identifier: UnsafeRawBufferPointer = .empty
  /// The device token.
  public var device: UnsafeRawBufferPointer = .empty
  /// The request's target, for an event without a device.
  public var target: UnsafeRawBufferPointer = .empty
  /// The application's bundle id.
  public var application: UnsafeRawBufferPointer = .empty
  /// The user.
  public var user: UnsafeRawBufferPointer = .empty
  /// The first position of the request.
  public var source: SourcePosition?
  /// The first topic of the request; empty if it is the configured one.
  public var sourceTopic: UnsafeRawBufferPointer = .empty
  /// The revision in the mailbox.
  public var revision: Revision?
  /// The trace context.
  public var traceparent: UnsafeRawBufferPointer = .empty
  /// The service extensions that processed the notification, as ``ExtensionStates``.
  public var extensions: UnsafeRawBufferPointer = .empty
  /// The members that only this type has.
  public var details = EventDetails.none
  /// Distinguishes two events of the same type, request, device and source.
  ///
  /// A response has its id for that.
  public var discriminator: UnsafeRawBufferPointer = .empty

  /// Creates an event without further facts.
  public init(_ type: Outcome) { self.type = type }

  /// Creates an event of a request whose device is not known yet.
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

  /// Creates an event of a request whose application is known.
  public init(_ type: Outcome, of request: RequestView) {
    self.init(type, of: request.envelope)
    application = request.application
    if let user = request.target.user { self.user = user }
  }

  /// Creates an event of a mailbox entry or delivery record, at its device.
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

  /// Creates an event of the notification that a receipt names.
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

/// The members of an event that not all events have.
public enum EventDetails {
  /// No further members.
  case none
  /// `devices`: the number of recipients.
  case addressed(devices: Int)
  /// `reason`, `field`, `rule`, and `offset` if it is known.
  case rejected(Rejection)
  /// The same, and `retryAfter`: when requests are accepted again, in milliseconds since 1970.
  case limited(Rejection, retryAfter: Int64)
  /// `by.apnsId`: the request that replaces or removes the notification.
  case by(NotificationID)
  /// `reason`: a word or a sentence of the program.
  case reason(StaticString)
  /// `skipped`: the number of occurrences that were too late and skipped together.
  case skipped(Int)
  /// `reason`: the application is stopped; `detail`: the person's reason, or nothing.
  case stopped(UnsafeRawBufferPointer)
  /// `response`, `action`, `userText`, `at`, `dynamic`, `unanswered`: the person's response.
  ///
  /// `at` is in milliseconds by the device's clock, but not later than the event. `dynamic` tells that only the device vouches for the
  /// action, and `unanswered` that a content extension had the response and has not answered.
  case response(
    UnsafeRawBufferPointer, action: UnsafeRawBufferPointer, userText: UnsafeRawBufferPointer?, at: Int64?, isDynamic: Bool = false,
    isUnanswered: Bool = false)
  /// `registration`: the device's record, as JSON.
  case registration(UnsafeRawBufferPointer)
}
