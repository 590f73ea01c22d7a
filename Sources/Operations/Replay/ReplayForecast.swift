import Kafka
import Notifications
import Worker

/// What becomes of a request that is published again, as far as that is known before the workers judge it.
enum ReplayEffect: Sendable {
  /// It was applied: the workers leave it alone.
  case applied
  /// Its end has passed: it is not shown.
  case expired
  /// It breaks a rule: it is rejected again.
  case rejected
  /// The workers judge it again: it has an effect, unless it is a repeat for its devices, which only they find out.
  case possible
  /// Nobody knows whether it was applied, since Redis has not said how far the workers are.
  case unknown
}

/// Says what becomes of requests that are published again. A value.
struct ReplayForecast: Sendable {
  let rules: RequestRules
  /// The offset below which all of a partition is applied, by partition; nil where Redis has not said it.
  ///
  /// Markers are never lowered but by a loss, so later fewer requests have an effect and not more.
  var markers: [Int32: Int64]?

  /// Of a request that comes again with its first place.
  func effect(of record: RecordView, from source: SourceCoordinates, now: Int64) -> ReplayEffect {
    rules.withReading(of: record) { reading in
      // The workers look at the rules before the markers.
      guard case .accepted(let view) = reading else { return .rejected }
      let position = source.position
      if let markers, position.offset < markers[position.partition] ?? 0 { return .applied }
      if rules.end(of: view) <= now { return .expired }
      return markers == nil ? .unknown : .possible
    }
  }

  /// Of a request that comes as one of its own.
  func effect(ofNew record: StoredRecord, partition: Int32, now: Int64) -> ReplayEffect {
    let position = SourcePosition(partition: partition, offset: 0, timestamp: now)
    return record.withRequest(topic: rules.topics.requests, position, cluster: rules.cluster) { record in
      guard case .accepted(let view) = RequestView.read(record, limits: rules.limits) else { return .rejected }
      return rules.end(of: view) <= now ? .expired : .possible
    }
  }
}

extension StoredRecord {
  /// A request as one of its own: without its first place, and with another apns-id.
  ///
  /// The id follows from the replay's name and the place, so a record that an interrupted replay writes twice is a repeat.
  init(_ record: RecordView, asNewIn run: String) {
    self.init(record)
    let position = SourcePosition(partition: record.partition, offset: record.offset, timestamp: record.timestamp)
    var run = run
    let id = run.withUTF8 { NotificationID.derived(topic: UnsafeRawBufferPointer($0), source: position) }
    RequestEdits(asNew: id).apply(to: &self)
  }
}
