import Kafka
import Notifications

/// Predicts the effects of publishing requests again, before the workers judge them. A value.
struct ReplayForecast: Sendable {
  let rules: RequestRules
  /// The offset below which a partition is applied, by partition; nil if Redis did not answer.
  ///
  /// Markers only rise, unless Redis loses data. So later fewer requests have an effect, not more.
  var markers: [Int32: Int64]?

  /// The effect of a request that is published again with its first place; nil if it may be applied.
  func effect(of record: RecordView, from source: SourceCoordinates, now: Int64) -> RunCount? {
    rules.withReading(of: record) { reading in
      // The workers check the rules before the markers.
      guard case .accepted(let view) = reading else { return .rejected }
      let position = source.position
      if let markers, position.offset < markers[position.partition] ?? 0 { return .applied }
      return rules.end(of: view) <= now ? .expired : nil
    }
  }
}
