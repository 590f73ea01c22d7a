package import Kafka
import Notifications
package import Worker

/// The time in which the wanted records were written, in milliseconds since 1970.
package struct TimeRange: Sendable, Hashable {
  /// The first moment; nil for the beginning.
  package var from: Int64?
  /// The first moment after it; nil for now.
  package var to: Int64?

  /// A range of its ends.
  package init(from: Int64? = nil, to: Int64? = nil) {
    self.from = from
    self.to = to
  }

  /// Whether it contains a moment.
  package func contains(_ time: Int64) -> Bool { time >= from ?? .min && time < to ?? .max }
}

extension Admin {
  /// Finds the stretches of a topic in a range of time, up to its present end.
  ///
  /// The embedded broker finds no offsets by time, so there the answer is all records. The reader selects those of the time.
  package func stretches(of topic: String, _ range: TimeRange = TimeRange()) async throws(KafkaError) -> [TopicStretch] {
    let partitions = try await describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
    let ends = try await ends(of: partitions)
    var (from, to): ([TopicPartition: Int64], [TopicPartition: Int64]) = ([:], [:])
    if range.from != nil || range.to != nil, try await !isEmbeddedBroker() {
      if let time = range.from { from = try await offsets(of: partitions, at: time) }
      if let time = range.to { to = try await offsets(of: partitions, at: time) }
    }
    return partitions.compactMap { partition in
      guard let ends = ends[partition] else { return nil }
      let first = max(ends.lowerBound, from[partition] ?? ends.lowerBound)
      return TopicStretch(partition, first, min(ends.upperBound, to[partition] ?? ends.upperBound))
    }
  }

  /// Finds the stretches of a topic up to its present end; none if there is no such topic.
  func stretches(ofOptional topic: String) async throws(KafkaError) -> [TopicStretch] {
    do throws(KafkaError) { return try await stretches(of: topic) } catch {
      guard error.code == .unknownTopicOrPartition else { throw error }
      return []
    }
  }

  /// Finds which of these positions still have a record. The topic may have been truncated or made again.
  func places(of positions: [SourcePosition], in topic: String) async throws(KafkaError) -> [(partition: TopicPartition, offset: Int64)] {
    guard !positions.isEmpty else { return [] }
    let partitions = try await describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
    let ends = try await ends(of: partitions.filter { partition in positions.contains { $0.partition == partition.partition } })
    return positions.compactMap { position in
      let partition = TopicPartition(topic, position.partition)
      return ends[partition]?.contains(position.offset) == true ? (partition, position.offset) : nil
    }
  }
}
