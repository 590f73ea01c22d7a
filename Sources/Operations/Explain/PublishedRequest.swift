import Kafka
package import Notifications
package import Worker

/// The settings of a cluster that tools need to read a request as workers do.
package struct RequestRules: Sendable {
  /// The cluster's topics.
  package var topics: Topics
  /// The limits of requests.
  package var limits: RequestLimits
  /// How long a request with `apns-expiration: 0` is tried.
  package var expiration: ExpirationRule
  /// The cluster's name in origins; nil if an origin may name any cluster.
  package var cluster: String?

  /// Makes the rules of a cluster.
  package init(
    topics: Topics = Topics(), limits: RequestLimits = RequestLimits(), oneAttemptSeconds: Int64 = ExpirationRule.oneAttemptSeconds
  ) {
    self.topics = topics
    self.limits = limits
    expiration = ExpirationRule(oneAttemptSeconds: oneAttemptSeconds)
  }

  /// Lends a record of the requests topic, read as workers do.
  func withReading<R>(of record: RecordView, _ body: (RequestReading) -> R) -> R {
    withRecord(record) { body(RequestView.read($0, limits: limits)) }
  }

  /// Lends a record of the requests topic.
  ///
  /// - Parameter source: the record's place; nil for where it was read. A dead letter names another place.
  func withRecord<R>(_ record: RecordView, from source: SourceCoordinates? = nil, _ body: (RequestRecord) -> R) -> R {
    var (topic, cluster) = (source?.topic ?? topics.requests, cluster ?? "")
    return topic.withUTF8 { topic in
      cluster.withUTF8 { cluster in
        let position = source?.position ?? SourcePosition(record)
        var request = RequestRecord(record, topic: UnsafeRawBufferPointer(topic), position: position)
        request.cluster = UnsafeRawBufferPointer(cluster)
        return body(request)
      }
    }
  }

  /// When a request expires, in milliseconds since 1970.
  func end(of request: RequestView) -> Int64 {
    let seconds = expiration.end(expiration: request.expiration, published: request.envelope.begins)
    return seconds.multipliedReportingOverflow(by: 1000).overflow ? .max : seconds * 1000
  }
}

extension Name {
  /// The token in lower case, if the name is the target `device:TOKEN`.
  var token: DeviceToken? { starts(with: "device:") ? withBytes { DeviceToken(UnsafeRawBufferPointer(rebasing: $0[7...])) } : nil }
}

extension PublishedRequest {
  /// Reads a record of the requests topic.
  init(_ record: RecordView, _ rules: RequestRules) {
    let source = SourceCoordinates(
      topic: rules.topics.requests, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
    var unknown: [String] = []
    record.forEachHeader { name, value in
      if value != nil, let field = UnknownField(header: name) { unknown.append(field.path) }
    }
    self = rules.withReading(of: record) { [unknown] reading in
      switch reading {
      case .accepted(let view):
        var identifier: Name?
        view.forEachIdentifier { identifier = Name($0) }
        var (schedule, firing): (ScheduleKey?, FiredOccurrence?)
        switch view.timing {
        case .now, .place: break
        case .time:
          schedule = ScheduleKey(application: Name(view.application), target: view.target.name, identifier: view.identifier)
        case .firing(let header):
          firing = FiredOccurrence(schedule: header.schedule.id, due: header.dueTime.due, zone: header.dueTime.zone)
        }
        return PublishedRequest(
          id: view.envelope.id, source: source, target: Name(view.envelope.target), application: Name(view.application),
          identifier: identifier == Name(view.envelope.id.description) ? nil : identifier, isDerivedID: view.envelope.isDerivedID,
          operation: "\(view.operation)", end: rules.end(of: view), broken: nil,
          origin: view.envelope.origin?.place, schedule: schedule, firing: firing,
          unknown: unknown + [view.facts.unknown?.path].compactMap(\.self))
      case .rejected(let rejection, let envelope):
        return PublishedRequest(
          id: envelope.id, source: source, target: Name(envelope.target),
          application: record.header(.topic).map { Name($0) },
          identifier: envelope.collapseID.isEmpty ? nil : Name(envelope.collapseID), isDerivedID: envelope.isDerivedID,
          operation: nil, end: nil, broken: rejection.rule, origin: envelope.origin?.place, unknown: unknown)
      }
    }
  }
}
