import Kafka
import Notifications
import Worker

/// Predicts the effects of publishing requests again, before the workers judge them. A value.
struct ReplayForecast: Sendable {
  let rules: RequestRules
  /// The offset below which a partition is applied, by partition; nil if Redis did not answer.
  ///
  /// Markers only rise, unless Redis loses data. So later fewer requests have an effect, not more.
  var markers: [Int32: Int64]?

  /// The effect of a request that is published again with its first place; nil if only the workers know whether it is a repeat.
  func effect(of record: RecordView, from source: SourceCoordinates, now: Int64) -> ReplayCount? {
    rules.withReading(of: record) { reading in
      // The workers check the rules before the markers.
      guard case .accepted(let view) = reading else { return .rejected }
      let position = source.position
      if let markers, position.offset < markers[position.partition] ?? 0 { return .applied }
      if rules.end(of: view) <= now { return .expired }
      return markers == nil ? .unknown : nil
    }
  }

  /// The effect of a request that is published as a new one; nil if it is delivered.
  func effect(ofNew record: StoredRecord, partition: Int32, now: Int64) -> ReplayCount? {
    let position = SourcePosition(partition: partition, offset: 0, timestamp: now)
    return record.withRequest(topic: rules.topics.requests, position, cluster: rules.cluster) { record in
      guard case .accepted(let view) = RequestView.read(record, limits: rules.limits) else { return .rejected }
      return rules.end(of: view) <= now ? .expired : nil
    }
  }
}

extension StoredRecord {
  /// Makes a new request from a record: without its first place, and with another apns-id.
  ///
  /// The id derives from the replay's name and the place, so a record that an interrupted replay writes twice is a repeat.
  init(_ record: RecordView, asNewIn run: String) {
    self.init(record)
    let position = SourcePosition(record)
    var run = run
    let id = run.withUTF8 { NotificationID.derived(topic: UnsafeRawBufferPointer($0), source: position) }
    RequestEdits(asNew: id).apply(to: &self)
  }
}
