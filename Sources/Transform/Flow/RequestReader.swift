import Kafka
import Notifications
import Store
import Worker

/// Reads the records of the requests' topic, and writes their delivery entries and heads for the judge.
struct RequestReader {
  private let cluster: [UInt8]
  private let topic: [UInt8]
  private let limits: RequestLimits
  private let expiration: ExpirationRule
  private let applications = RecentNameHashes()

  init(_ settings: TransformSettings) {
    cluster = Array(settings.cluster.utf8)
    topic = Array(settings.topics.requests.utf8)
    limits = settings.limits
    expiration = ExpirationRule(oneAttemptSeconds: settings.oneAttemptSeconds)
  }

  /// Reads a record by every rule.
  func read<Result>(_ record: RecordView, _ body: (RequestReading) -> Result) -> Result {
    withRequest(record) { body(RequestView.read($0, limits: limits)) }
  }

  /// Reads an accepted record again. If it breaks a rule now, that is a permanent error.
  func readAccepted(_ record: RecordView, _ body: (RequestView) -> Conclusion) -> Conclusion {
    read(record) { reading in
      if case .accepted(let view) = reading { return body(view) }
      return .poisoned("the record broke no rule when it was taken, and breaks one now")
    }
  }

  /// Reads a record's sender and purpose, and nothing else of it.
  func readEnvelope<Result>(_ record: RecordView, _ body: (RequestEnvelope) -> Result) -> Result {
    withRequest(record) { body(RequestEnvelope($0)) }
  }

  private func withRequest<Result>(_ record: RecordView, _ body: (RequestRecord) -> Result) -> Result {
    topic.withUnsafeBytes { topic in
      cluster.withUnsafeBytes { cluster in
        var request = RequestRecord(record, topic: topic)
        request.cluster = cluster
        return body(request)
      }
    }
  }

  /// Writes a request's content for the stages. Nil when its delivery entry does not fit, which the rules prevent.
  func content(_ view: RequestView, in arena: Arena, incarnation: UInt32) -> RequestContent? {
    guard let entry = entry(view, in: arena, incarnation: incarnation) else { return nil }
    let receiver = Receiver(view.target, application: view.application, in: arena)
    let isMutable = view.operation == .notify && view.pushType == .alert && view.facts.flags.isMutable && !view.timing.isLater
    return RequestContent(arena: arena, entry: entry, receiver: receiver, mutability: isMutable ? .mutable : .fixed)
  }

  private func entry(_ view: RequestView, in arena: Arena, incarnation: UInt32) -> RequestEntry? {
    var entry = DeliveryEntry(view)
    var withdraws: NotificationID?
    var written: (span: ArenaSpan, identifier: ArenaSpan)?
    view.forEachIdentifier { identifier in
      if view.removesAll {
        entry = DeliveryEntry(removing: .empty, by: view, id: view.envelope.id)
      } else if view.operation != .notify {
        entry = DeliveryEntry(removing: identifier, by: view, id: view.envelope.id)
        withdraws = NotificationID(text: identifier)
      }
      let start = arena.bytes.count
      guard (try? entry.append(to: &arena.bytes)) != nil else { return written = nil }
      written = (ArenaSpan(start: start, count: arena.bytes.count - start), arena.keep(entry.identifier))
    }
    guard let written else { return nil }
    let own = view.envelope.revision.inIncarnation(incarnation)
    var request = RequestEntry(
      span: written.span, kind: entry.kind, collapseID: written.identifier, application: applications.hash(view.application),
      user: entry.userHash, time: view.envelope.source.timestamp, withdraws: withdraws, id: entry.id.hash64,
      rememberedID: view.rememberedID.windowHash, source: sourceHash(view.envelope),
      end: expiration.end(expiration: entry.expiration, published: view.envelope.begins),
      revision: own)
    // A removal of location requests is bounded, also where its bound does not count.
    request.isBounded = view.removesPending
    if let bound = view.bound(below: own) { (request.revision, request.isBounded) = (bound, true) }
    (request.removesAll, request.isOfPending) = (view.removesAll, view.isOfPending)
    request.redrive = view.envelope.origin.map { $0.isUnfinished ? .unfinished : .redriven }
    return request
  }

  /// A hash of the record's position, which tells records apart that have the same apns-id.
  private func sourceHash(_ envelope: RequestEnvelope) -> UInt32 {
    withUnsafeTemporaryAllocation(byteCount: 24, alignment: 8) { bytes in
      bytes.storeBytes(of: envelope.source.offset, as: Int64.self)
      bytes.storeBytes(of: envelope.source.timestamp, toByteOffset: 8, as: Int64.self)
      bytes.storeBytes(of: Int64(envelope.source.partition), toByteOffset: 16, as: Int64.self)
      return UInt32(truncatingIfNeeded: StableHash.hash(UnsafeRawBufferPointer(bytes)))
    }
  }
}
