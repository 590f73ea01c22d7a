import Kafka
import Notifications
import Store
import Worker

/// Reads the records of the requests' topic, and writes what is handed on of them: delivery entries, and what the judge needs to know.
struct RequestReader {
  private let cluster: [UInt8]
  private let topic: [UInt8]
  private let limits: RequestLimits
  private let expiration: ExpirationRule

  init(_ settings: TransformSettings) {
    cluster = Array(settings.cluster.utf8)
    topic = Array(settings.topics.requests.utf8)
    limits = settings.limits
    expiration = ExpirationRule(oneAttemptSeconds: settings.oneAttemptSeconds)
  }

  /// Reads a record by every rule.
  func read(_ record: RecordView, _ body: (RequestReading) -> Void) {
    withRequest(record) { body(RequestView.read($0, limits: limits)) }
  }

  /// Reads a record once more that was accepted when it was taken; one that breaks a rule now has a fault.
  func readAccepted(_ slot: Flow.Slot, _ inFlight: InFlight, _ body: (RequestView) -> Void) {
    read(inFlight[slot].record) { reading in
      if case .accepted(let view) = reading { return body(view) }
      inFlight.fault(slot, "the record broke no rule when it was taken, and breaks one now")
      inFlight.flow.fail(slot)
    }
  }

  /// Reads who sent a record and what for, whatever else is in it.
  func readEnvelope(_ record: RecordView, _ body: (RequestEnvelope) -> Void) {
    withRequest(record) { body(RequestEnvelope($0)) }
  }

  private func withRequest(_ record: RecordView, _ body: (RequestRecord) -> Void) {
    topic.withUnsafeBytes { topic in
      cluster.withUnsafeBytes { cluster in
        var request = RequestRecord(record, topic: topic)
        request.cluster = cluster
        body(request)
      }
    }
  }

  /// Writes what the stages hand on of a request; nil when its delivery entry does not fit, which no request is that the rules let pass.
  func content(_ view: RequestView, in arena: Arena, incarnation: UInt32) -> RequestContent? {
    guard let entry = entry(view, in: arena, incarnation: incarnation) else { return nil }
    let receiver: RequestContent.Receiver =
      switch view.target {
      case .device(let token): .device(arena.keep { DeviceToken.append(token, to: &$0) })
      case .user(let user): .person(arena.keep(user), application: arena.keep(view.application))
      }
    let isMutable = view.operation == .notify && view.pushType == .alert && view.facts.flags.isMutable
    return RequestContent(arena: arena, entry: entry, receiver: receiver, mutability: isMutable ? .mutable : .fixed)
  }

  private func entry(_ view: RequestView, in arena: Arena, incarnation: UInt32) -> RequestEntry? {
    var entry = DeliveryEntry(view)
    var withdraws: NotificationID?
    var written: (span: ArenaSpan, identifier: ArenaSpan)?
    view.forEachIdentifier { identifier in
      if view.operation == .remove {
        entry = DeliveryEntry(removing: identifier, by: view, id: view.envelope.id)
        withdraws = NotificationID(text: identifier)
      }
      let start = arena.bytes.count
      guard (try? entry.append(to: &arena.bytes)) != nil else { return written = nil }
      written = (ArenaSpan(start: start, count: arena.bytes.count - start), arena.keep(entry.identifier))
    }
    guard let written else { return nil }
    var request = RequestEntry(
      span: written.span, kind: entry.kind, collapseID: written.identifier, application: StableHash.hash(view.application),
      user: view.target.userHash, time: view.envelope.source.timestamp, withdraws: withdraws, id: entry.id.hash64,
      source: sourceHash(view.envelope), end: expiration.end(expiration: entry.expiration, published: entry.source.timestamp),
      revision: view.envelope.revision.inIncarnation(incarnation))
    request.comesAgain = view.envelope.origin.map { origin in
      switch origin.purpose {
      case .replay: .replayed
      case .redrive: origin.isUnfinished ? .unfinished : .redriven
      }
    }
    return request
  }

  /// Tells records apart that bring the same apns-id.
  private func sourceHash(_ envelope: RequestEnvelope) -> UInt32 {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { bytes in
      // Eight zeros first: without them the window of recent ids would take every record for another one after an update.
      bytes.storeBytes(of: 0, as: UInt64.self)
      bytes.storeBytes(of: envelope.source.offset, toByteOffset: 8, as: Int64.self)
      bytes.storeBytes(of: envelope.source.timestamp, toByteOffset: 16, as: Int64.self)
      bytes.storeBytes(of: Int64(envelope.source.partition), toByteOffset: 24, as: Int64.self)
      return UInt32(truncatingIfNeeded: StableHash.hash(UnsafeRawBufferPointer(bytes)))
    }
  }
}

extension RequestRecord {
  /// A consumed record, read in place.
  init(_ record: RecordView, topic: UnsafeRawBufferPointer) {
    var headers = RequestHeaders()
    record.forEachHeader { name, value in
      if let value { headers.take(name: name, value: value) }
    }
    self.init(
      key: record.key ?? UnsafeRawBufferPointer(start: nil, count: 0), value: record.value ?? UnsafeRawBufferPointer(start: nil, count: 0),
      headers: headers, topic: topic,
      position: SourcePosition(partition: record.partition, offset: record.offset, timestamp: record.timestamp))
  }
}
