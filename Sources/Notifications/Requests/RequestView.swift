/// A record of `requests`, borrowed. Its bytes are valid as long as the holder keeps the record.
public struct RequestRecord {
  /// The record key; empty when it is null.
  public var key: UnsafeRawBufferPointer
  /// The payload; empty when it is null.
  public var value: UnsafeRawBufferPointer
  /// The headers.
  public var headers: RequestHeaders
  /// The topic that the record is in.
  public var topic: UnsafeRawBufferPointer
  /// The record's partition, offset and timestamp.
  public var position: SourcePosition
  /// The name of the cluster that reads the record.
  ///
  /// It is empty in a tool that does not know it. An origin may then name any cluster.
  public var cluster: UnsafeRawBufferPointer

  /// Creates a record from its parts.
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

/// The facts that name any request in events, even a rejected one.
public struct RequestEnvelope {
  /// The `apns-id`. Without a valid one it is derived from the position of the record.
  public let id: NotificationID
  /// Whether the id was derived.
  public let isDerivedID: Bool
  /// The `apns-collapse-id`; empty if there is none. The identifier is then the id's text.
  public let collapseID: UnsafeRawBufferPointer
  /// The `target` header, else the record key. It is the key of events without a device.
  public let target: UnsafeRawBufferPointer
  /// The `apns-topic` as given, for the application of a rejected request; see ``application``.
  private let topic: UnsafeRawBufferPointer
  private let pushType: UnsafeRawBufferPointer?
  /// The first position of the request: its record's own, or its origin's.
  public let source: SourcePosition
  /// The origin of a record that was published again; nil unless it counts.
  public let origin: Origin?
  /// Whether it is a removal, as its header says. It may break a rule all the same.
  public let isRemoval: Bool
  /// The time of its own record, in milliseconds since 1970.
  public let published: Int64
  /// The trace context; empty if there is none.
  public let traceparent: UnsafeRawBufferPointer
  /// The header `carillon-firing` as given; empty if there is none.
  public let firing: UnsafeRawBufferPointer

  /// Reads a record's headers, which may break any rule.
  public init(_ record: RequestRecord) {
    origin = (try? Origin.counting(for: record)) ?? nil
    source = origin?.position ?? record.position
    published = record.position.timestamp
    isRemoval = record.headers[.operation]?.equals("remove") == true
    let given = record.headers[.id].flatMap(NotificationID.init(text:))
    id = given ?? .derived(topic: record.topic, source: source)
    topic = record.headers[.topic] ?? .empty
    pushType = record.headers[.pushType]
    isDerivedID = given == nil
    collapseID = record.headers[.collapseID] ?? .empty
    target = record.headers[.target] ?? record.key
    traceparent = TraceParent.carried(record.headers[.traceparent])
    firing = record.headers[.firing] ?? .empty
  }

  /// When its time begins: the earlier of its first time and its own record's, in milliseconds since 1970.
  public var begins: Int64 { min(source.timestamp, published) }

  /// The request's revision: its first place, with the time at which it begins.
  ///
  /// An origin says which request a record is, and any producer can write one with a time minutes ahead. What the request supersedes, removes
  /// or cancels was therefore published before its own record.
  public var revision: Revision {
    var place = source
    place.timestamp = begins
    return Revision(place)
  }

  /// The application, as far as the headers of a rejected request tell it.
  ///
  /// It is empty if `apns-topic` is not a topic.
  public var application: UnsafeRawBufferPointer {
    guard ApplicationTopic.isValid(topic) else { return .empty }
    return ApplicationTopic.application(of: topic, for: pushType.flatMap { PushType(name: $0) } ?? .alert) ?? topic
  }
}

/// The result of reading a request record.
public enum RequestReading {
  /// The request keeps every rule.
  case accepted(RequestView)
  /// The request breaks a rule: the first in the order of the checks.
  case rejected(Rejection, RequestEnvelope)
}

/// A request that keeps every rule, borrowed from its record. Creating it allocates nothing, but for an occurrence.
public struct RequestView {
  /// What a request does.
  public enum Operation: String, Sendable, CaseIterable {
    /// Show a notification, or wake the application.
    case notify
    /// Remove delivered notifications, by identifier or all of them.
    case remove
    /// Cancel pending requests, by identifier or all of them.
    case cancel
  }

  /// When or where a request is due.
  public enum Timing {
    /// Now.
    case now
    /// At a location: a trigger that the device evaluates, as JSON.
    case place(UnsafeRawBufferPointer)
    /// At a time: a ``TimedTrigger``, as JSON.
    case time(UnsafeRawBufferPointer)
    /// Now, as an occurrence of a schedule.
    case firing(FiringHeader)

    /// Whether the request is due at a time.
    public var isLater: Bool { if case .time = self { true } else { false } }

    /// Whether the request is due at a time, or is an occurrence of such a request.
    public var isOfSchedule: Bool {
      switch self {
      case .time, .firing: true
      case .now, .place: false
      }
    }
  }

  /// The id, the source and the trace context.
  public let envelope: RequestEnvelope
  /// What the request does.
  public let operation: Operation
  /// The device or the person.
  public let target: Target
  /// The `apns-topic` as given.
  public let topic: UnsafeRawBufferPointer
  /// The application's bundle id: the topic without the suffix of its push type.
  public let application: UnsafeRawBufferPointer
  /// The last time to show it, in seconds since 1970; 0 is one attempt.
  ///
  /// It is limited by the longest lifetime.
  public let expiration: Int64
  /// The priority: 10, 5 or 1.
  public let priority: UInt8
  /// The kind of notification, inferred if the header is absent.
  public let pushType: PushType
  /// When or where it is due.
  public let timing: Timing
  /// The payload as published; empty for a remove or a cancel.
  public let payload: UnsafeRawBufferPointer
  /// What the payload asks of the device.
  public let facts: PayloadFacts
  /// The first unknown header whose name begins with `apns-`.
  public let unknownHeader: UnknownField?
  /// Whether it removes all delivered notifications of its application, or cancels all pending ones.
  public let removesAll: Bool
  /// Whether it removes location requests from the devices, and no delivered notifications.
  public let removesPending: Bool
  /// Whether opening it on one device removes it from the person's others.
  public let removesWhenOpened: Bool
  private let bound: Revision?
  private let removed: UnsafeRawBufferPointer

  /// Reads a record and checks every rule.
  ///
  /// The order of the checks is: duplicate header, id, topic, collapse id, priority, push type with its topic suffix and priority. Then
  /// expiration, target, operation, trigger, when-opened, origin, empty payload, size, content.
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
    if headers[.id] != nil, envelope.isDerivedID {
      throw Rejection(.badMessageID, field: "apns-id", rule: "An apns-id is a UUID: 8-4-4-4-12 hexadecimal digits.")
    }
    if headers[.id] != nil, headers[.firing] == nil, envelope.id.isOfOccurrence {
      throw Rejection(.badMessageID, field: "apns-id", rule: "The cluster gives such an apns-id to the occurrences of schedules only.")
    }
    let topic = try HeaderRules.topic(headers[.topic])
    try HeaderRules.checkCollapseID(headers[.collapseID])
    let givenPriority = try HeaderRules.priority(headers[.priority])
    let givenType = try HeaderRules.pushType(headers[.pushType])
    guard let application = ApplicationTopic.application(of: topic, for: givenType ?? .alert) else {
      throw Rejection(.badTopic, field: "apns-topic", rule: "The topic of this push type is the bundle id and the push type's suffix.")
    }
    if givenType == .background { try HeaderRules.checkBackground(givenPriority) }
    // An origin's time may be up to five minutes after the record's. It must not prolong the lifetime.
    expiration = try HeaderRules.expiration(headers[.expiration], published: envelope.begins, limits)
    if headers[.channelID] != nil {
      throw Rejection(.featureNotEnabled, field: "apns-channel-id", rule: "Broadcasts to a channel are not available in this version.")
    }
    target = try HeaderRules.target(headers[.target], key: record.key)
    let given = try HeaderRules.operation(headers[.operation])
    timing = try HeaderRules.timing(headers, given)
    removesWhenOpened = try HeaderRules.removesWhenOpened(headers[.whenOpened], given, target)
    if envelope.origin == nil { _ = try Origin.counting(for: record) }

    switch given {
    case .notify:
      operation = given
      try limits.check(payloadBytes: record.value.count, of: givenType)
      facts = try PayloadFacts(checking: record.value, of: givenType)
      payload = record.value
      (removed, removesAll, removesPending, bound) = (.empty, false, false, nil)
    case .remove, .cancel:
      try RequestLimits.check(removeBytes: record.value.count)
      let body = record.value.isEmpty ? nil : try RemoveBody(checking: record.value)
      let isOfAll = body?.removesAll ?? false
      guard (headers[.collapseID] == nil ? 0 : 1) + (body?.count ?? 0) + (isOfAll ? 1 : 0) == 1 else {
        throw Rejection(.badRequestPayload, field: "identifiers", rule: RemoveBody.rule)
      }
      (removed, removesAll, bound) = (body?.source ?? .empty, isOfAll, body?.bound)
      // What is pending is canceled, also at the schedules. Only a cancel's own removal at the devices has a bound.
      let isOfPending = given == .remove && body?.isOfPending ?? false
      (operation, removesPending) = isOfPending && bound == nil ? (.cancel, false) : (given, isOfPending)
      facts = PayloadFacts(flags: [], categorySource: .empty)
      payload = .empty
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

  /// The name hash of the person it is for; 0 if it is for the device, whose ever that is.
  ///
  /// An occurrence of a device's schedule is for the person who had the device at the request.
  public var userHash: UInt64 {
    if case .firing(let firing) = timing, target.user == nil { return firing.owner }
    return target.userHash
  }

  /// The apns-id under which a device remembers the request, to recognize a duplicate.
  ///
  /// The occurrence of a one-off trigger is remembered under the apns-id that its producer gave. So a device shows one notification of that
  /// apns-id, whether a record with the trigger or one without it comes first. The occurrences of a repeating trigger have apns-ids of their
  /// own.
  public var rememberedID: NotificationID {
    if case .firing(let firing) = timing, !firing.repeats { return firing.schedule.id }
    return envelope.id
  }

  /// The trigger that the device evaluates, as JSON; empty without a location trigger.
  public var placeTrigger: UnsafeRawBufferPointer { if case .place(let trigger) = timing { trigger } else { .empty } }

  /// Whether it concerns location requests at the devices, which no removal of all removes.
  public var isOfPending: Bool { !placeTrigger.isEmpty || removesPending }

  /// Whether it replaces a pending request: shown now, with an identifier of its producer.
  public var namesIdentifier: Bool {
    switch timing {
    case .now, .place: operation == .notify && !(envelope.isDerivedID && envelope.collapseID.isEmpty)
    case .time, .firing: false
    }
  }

  /// The identifier of a request. Every request that was read has exactly one.
  public var identifier: Name {
    var identifier: Name = ""
    forEachIdentifier { identifier = Name($0) }
    return identifier
  }

  /// Returns the bound of a removal, if it is older than the removal itself.
  ///
  /// A removal removes nothing newer than its bound. Any producer may set a bound, and it only narrows the removal. So it counts only if it
  /// is older by the rule of newness, and up to the time of the removal. `own` is the removal's revision in the topic.
  public func bound(below own: Revision) -> Revision? {
    guard let bound, own.isNewer(than: bound) else { return nil }
    return Revision(timestamp: min(bound.timestamp, own.timestamp), partition: bound.partition, offset: bound.offset)
  }

  /// Calls `body` with each header that the request's occurrences take over, and its value, valid during the call.
  ///
  /// The other headers of an occurrence follow from its schedule: target, id, collapse id, expiration and firing.
  public func forEachHeaderOfOccurrences(_ body: (RequestHeader, UnsafeRawBufferPointer) -> Void) {
    func pass(_ header: RequestHeader, _ value: String) { Name(value).withBytes { body(header, $0) } }
    body(.topic, topic)
    pass(.priority, "\(priority)")
    pass(.pushType, "\(pushType.name)")
    if removesWhenOpened { pass(.whenOpened, "remove") }
    if !envelope.traceparent.isEmpty { body(.traceparent, envelope.traceparent) }
  }

  /// Calls `body` with the identifier of the request, valid during the call.
  ///
  /// Each request has exactly one. Without a collapse id, a notification or a removal of all has its id's text.
  public func forEachIdentifier(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
    if !envelope.collapseID.isEmpty {
      try body(envelope.collapseID)
    } else if operation == .notify || removesAll {
      try envelope.id.withText(body)
    }
    try RemoveBody.forEach(in: removed, body)
  }
}
