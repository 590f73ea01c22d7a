import Kafka
import Notifications
import Store
import Worker

/// Reads the records of the requests' topic, and writes what is handed on of them: delivery entries, and what the judge needs to know.
struct RequestReader {
  private let topic: [UInt8]
  private let limits: RequestLimits
  private let expiration: ExpirationRule

  init(_ settings: TransformSettings) {
    topic = Array(settings.topics.requests.utf8)
    limits = settings.limits
    expiration = ExpirationRule(oneAttemptSeconds: settings.oneAttemptSeconds)
  }

  /// Reads a record by every rule.
  func read(_ record: RecordView, _ body: (RequestReading) -> Void) {
    topic.withUnsafeBytes { body(RequestView.read(RequestRecord(record, topic: $0), limits: limits)) }
  }

  /// Reads a record that was accepted once more.
  func readAccepted(_ record: RecordView, _ body: (RequestView) -> Void) {
    read(record) { reading in
      if case .accepted(let view) = reading { body(view) }
    }
  }

  /// Reads who sent a record and what for, whatever else is in it.
  func readEnvelope(_ record: RecordView, _ body: (RequestEnvelope) -> Void) {
    topic.withUnsafeBytes { body(RequestEnvelope(RequestRecord(record, topic: $0))) }
  }

  /// Writes a request's delivery entry; nil when it does not fit, which no request is that the rules let pass.
  func entry(_ view: RequestView, in arena: Arena, incarnation: UInt32) -> RequestEntry? {
    var entry = DeliveryEntry(view)
    var withdraws: NotificationID?
    let start = arena.bytes.count
    var isWritten = false
    view.forEachIdentifier { identifier in
      if view.operation == .remove {
        entry = DeliveryEntry(removing: identifier, by: view, id: view.envelope.id)
        withdraws = NotificationID(text: identifier)
      }
      isWritten = (try? entry.append(to: &arena.bytes)) != nil
    }
    guard isWritten else { return nil }
    return RequestEntry(
      span: ArenaSpan(start: start, count: arena.bytes.count - start), application: StableHash.hash(view.application),
      user: view.target.userHash,
      time: view.envelope.source.timestamp, withdraws: withdraws, id: entry.id.hash64, source: sourceHash(view.envelope),
      end: expiration.end(expiration: entry.expiration, published: entry.source.timestamp),
      revision: view.envelope.revision.inIncarnation(incarnation))
  }

  /// Tells records apart that bring the same apns-id.
  private func sourceHash(_ envelope: RequestEnvelope) -> UInt32 {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { bytes in
      let topic = envelope.sourceTopic.isEmpty ? 0 : StableHash.hash(envelope.sourceTopic)
      bytes.storeBytes(of: topic, as: UInt64.self)
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
