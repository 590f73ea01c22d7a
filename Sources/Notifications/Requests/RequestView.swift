/// A record of the requests topic, borrowed: its bytes are valid as long as its holder keeps the record.
public struct RequestRecord {
  /// The record key; none when it is null.
  public var key: UnsafeRawBufferPointer
  /// The payload; none when it is null.
  public var value: UnsafeRawBufferPointer
  /// The headers.
  public var headers: RequestHeaders
  /// The topic it was read from.
  public var topic: UnsafeRawBufferPointer
  /// Its partition, offset and timestamp.
  public var position: SourcePosition
  /// The name of the cluster that reads it; none where a tool does not know it: then an origin may name any cluster.
  public var cluster: UnsafeRawBufferPointer

  /// A record of its parts.
  public init(
    key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, headers: RequestHeaders, topic: UnsafeRawBufferPointer,
    position: SourcePosition, cluster: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) {
    self.key = key
    self.value = value
    self.headers = headers
    self.topic = topic
    self.position = position
    self.cluster = cluster
  }
}

/// What is known of every request, a rejected one included: enough to say in an event which one it was.
public struct RequestEnvelope {
  /// The `apns-id`, or the one derived from where the record lies when there is none, or none that is valid.
  public let id: NotificationID
  /// Whether the id was derived.
  public let isDerivedID: Bool
  /// `apns-collapse-id`; none when there is none, then the id's text is the request's identifier.
  public let collapseID: UnsafeRawBufferPointer
  /// The `target` header, else the record key: what events of a request without a device are keyed by.
  public let target: UnsafeRawBufferPointer
  /// `apns-topic` where it is one, for the application of a request that breaks a rule; see ``application``.
  private let topic: UnsafeRawBufferPointer
  private let pushType: UnsafeRawBufferPointer?
  /// Where the request came from first: the record's own position, or its origin's.
  public let source: SourcePosition
  /// The origin of a record that comes again; none where it has one that does not count.
  public let origin: Origin?
  /// When it was published, as the stops of its application count, in milliseconds since 1970: the time of the record itself, for one that
  /// comes again as new work was published again. A replay repeats what was, so it has the time of its first record.
  public let published: Int64
  /// The trace context; none when there is none.
  public let traceparent: UnsafeRawBufferPointer

  /// Reads a record's headers, which may break any rule.
  public init(_ record: RequestRecord) {
    origin = (try? Origin.counting(for: record)) ?? nil
    source = origin?.position ?? record.position
    published = origin?.purpose == .replay ? source.timestamp : record.position.timestamp
    let given = record.headers.id.flatMap(NotificationID.init(text:))
    id = given ?? .derived(topic: record.topic, source: source)
    topic = record.headers.topic ?? .none
    pushType = record.headers.pushType
    isDerivedID = given == nil
    collapseID = record.headers.collapseID ?? .none
    target = record.headers.target ?? record.key
    traceparent = TraceParent.carried(record.headers.traceparent)
  }

  /// The request's revision.
  public var revision: Revision { Revision(source) }

  /// The application, as far as the headers of a request that breaks a rule tell it; none when `apns-topic` is no topic.
  public var application: UnsafeRawBufferPointer {
    guard ApplicationTopic.isValid(topic) else { return .none }
    return ApplicationTopic.application(of: topic, for: pushType.flatMap { PushType(name: $0) } ?? .alert) ?? topic
  }
}

/// What becomes of a request record when it is read.
public enum RequestReading {
  /// It keeps every rule.
  case accepted(RequestView)
  /// It breaks a rule, the first one in the order of checking.
  case rejected(Rejection, RequestEnvelope)
}

/// A request that keeps every rule, borrowed from its record; made without an allocation.
public struct RequestView {
  /// What a request wants done.
  public enum Operation: UInt8, Sendable {
    /// Show a notification, or wake the application.
    case notify = 1
    /// Take delivered notifications away, by identifier or all of them.
    case remove = 2
    /// Do not show what waits for its time, by identifier.
    case cancel = 3
  }

  /// When or where a request is due.
  public enum Timing {
    /// Now.
    case now
    /// Where the device is: a trigger that the device evaluates, as JSON.
    case place(UnsafeRawBufferPointer)
    /// At a time: a ``TimedTrigger``, as JSON.
    case time(UnsafeRawBufferPointer)
    /// Now, since a schedule is due: a ``FiringHeader``, as JSON.
    case firing(UnsafeRawBufferPointer)

    /// Whether nothing is shown before its time.
    public var isLater: Bool { if case .time = self { true } else { false } }
  }

  /// Id, source, trace context.
  public let envelope: RequestEnvelope
  /// What it wants done.
  public let operation: Operation
  /// Whom it is for.
  public let target: Target
  /// `apns-topic` as given.
  public let topic: UnsafeRawBufferPointer
  /// The application's bundle id: the topic without the suffix of its push type.
  public let application: UnsafeRawBufferPointer
  /// Until when it may be shown, in seconds since 1970, cut to the longest lifetime; 0 is one attempt.
  public let expiration: Int64
  /// 10, 5 or 1.
  public let priority: UInt8
  /// What kind of notification; inferred when the header is absent.
  public let pushType: PushType
  /// When or where it is due.
  public let timing: Timing
  /// The payload as published; none for a remove or a cancel.
  public let payload: UnsafeRawBufferPointer
  /// What the payload asks for.
  public let facts: PayloadFacts
  /// The first header that begins with `apns-` and that no rule knows.
  public let unknownHeader: UnknownField?
  /// Whether it removes all delivered notifications of its application, or cancels all pending ones.
  public let removesAll: Bool
  /// Whether it removes what waits for a place at the devices, and nothing that was delivered.
  public let removesPending: Bool
  /// Whether opening it on one device removes it from the person's others.
  public let removesWhenOpened: Bool
  private let bound: Revision?
  private let removed: UnsafeRawBufferPointer

  /// Reads a record and checks it by every rule, in this order: a header standing twice, id, topic, collapse id, priority, push type
  /// (with the topic's suffix and the priority that it needs), expiration, target, operation, trigger, when-opened, origin, empty payload, size, content.
  public static func read(_ record: RequestRecord, limits: RequestLimits) -> RequestReading {
    let envelope = RequestEnvelope(record)
    do throws(Rejection) {
      return .accepted(try RequestView(record, envelope, limits))
    } catch {
      return .rejected(error.naming(record.headers.unknown), envelope)
    }
  }

  private init(_ record: RequestRecord, _ envelope: RequestEnvelope, _ limits: RequestLimits) throws(Rejection) {
    let headers = record.headers
    if let duplicate = headers.duplicate {
      throw Rejection(.duplicateHeaders, field: duplicate.name, rule: "A header of a request stands once.")
    }
    if headers.id != nil, envelope.isDerivedID {
      throw Rejection(.badMessageID, field: "apns-id", rule: "An apns-id is a UUID: 8-4-4-4-12 hexadecimal digits.")
    }
    let topic = try HeaderRules.topic(headers.topic)
    try HeaderRules.checkCollapseID(headers.collapseID)
    let givenPriority = try HeaderRules.priority(headers.priority)
    let givenType = try HeaderRules.pushType(headers.pushType)
    guard let application = ApplicationTopic.application(of: topic, for: givenType ?? .alert) else {
      throw Rejection(.badTopic, field: "apns-topic", rule: "The topic of this push type is the bundle id and the push type's suffix.")
    }
    if givenType == .background { try HeaderRules.checkBackground(givenPriority) }
    // An origin prolongs no lifetime: its time may be up to five minutes after the record's.
    let published = min(envelope.source.timestamp, record.position.timestamp)
    expiration = try HeaderRules.expiration(headers.expiration, published: published, limits)
    if headers.channelID != nil {
      throw Rejection(.featureNotEnabled, field: "apns-channel-id", rule: "Broadcasts to a channel are not available in this version.")
    }
    target = try HeaderRules.target(headers.target, key: record.key)
    operation = try HeaderRules.operation(headers.operation)
    timing = try HeaderRules.timing(headers, operation)
    removesWhenOpened = try HeaderRules.removesWhenOpened(headers.whenOpened, operation, target)
    if envelope.origin == nil { _ = try Origin.counting(for: record) }

    switch operation {
    case .notify:
      try limits.check(payloadBytes: record.value.count, of: givenType)
      facts = try PayloadFacts(checking: record.value, of: givenType)
      payload = record.value
      (removed, removesAll, removesPending, bound) = (.none, false, false, nil)
    case .remove, .cancel:
      try RequestLimits.check(removeBytes: record.value.count)
      let body = record.value.isEmpty ? nil : try RemoveBody(checking: record.value)
      let isOfAll = body?.removesAll ?? false
      guard (headers.collapseID == nil ? 0 : 1) + (body?.count ?? 0) + (isOfAll ? 1 : 0) == 1 else {
        throw Rejection(.badRequestPayload, field: "identifiers", rule: RemoveBody.rule)
      }
      (removed, removesAll, bound) = (body?.source ?? .none, isOfAll, body?.bound)
      removesPending = operation == .remove && body?.isOfPending ?? false
      facts = PayloadFacts(flags: [], categorySource: .none)
      payload = .none
    }

    let type = givenType ?? (facts.isSilent ? .background : .alert)
    if type == .background, givenType == nil { try HeaderRules.checkBackground(givenPriority) }
    pushType = type
    priority = givenPriority ?? (type == .background ? 5 : 10)
    self.envelope = envelope
    self.topic = topic
    self.application = application
    unknownHeader = headers.unknown
  }

  /// The trigger that the device evaluates, as JSON; none for what is not due at a place.
  public var placeTrigger: UnsafeRawBufferPointer { if case .place(let trigger) = timing { trigger } else { .none } }

  /// Whether it concerns what waits for a place at the devices, which no removal of all touches.
  public var isOfPending: Bool { !placeTrigger.isEmpty || removesPending }

  /// Whether it is shown now, and its producer has chosen its identifier: then it takes the place of what is pending under that.
  public var namesIdentifier: Bool {
    switch timing {
    case .now, .place: operation == .notify && !(envelope.isDerivedID && envelope.collapseID.isEmpty)
    case .time, .firing: false
    }
  }

  /// The identifier of a request that has exactly one, as all that are read have.
  public var identifier: Name {
    var identifier: Name = ""
    forEachIdentifier { identifier = Name($0) }
    return identifier
  }

  /// The revision that a removal takes nothing newer than, where that is an older one than its own; its own is given as it is in the topic.
  ///
  /// Anybody who may publish may give one, and it makes a removal take less. So it counts only if it is older by the rule of newness, and not
  /// far in the future.
  public func bound(below own: Revision) -> Revision? {
    guard let bound, bound.judging(own) != nil, bound.offset != own.offset || bound.partition != own.partition else { return nil }
    let latest = own.timestamp.addingReportingOverflow(UInt64(Origin.clockTolerance))
    return latest.overflow || bound.timestamp <= latest.partialValue ? bound : nil
  }

  /// Calls `body` with each identifier that the request is about, valid during the call: exactly one.
  ///
  /// The identifier of a notification without a collapse id, and of a removal of all, is its id's text.
  public func forEachIdentifier(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
    if !envelope.collapseID.isEmpty {
      try body(envelope.collapseID)
    } else if operation == .notify || removesAll {
      try envelope.id.withText(body)
    }
    try RemoveBody.forEach(in: removed, body)
  }
}
