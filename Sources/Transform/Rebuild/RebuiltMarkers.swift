import Kafka
import Store

/// What the markers of a rebuilt Redis will say: the last record of each partition, and the incarnation of its topic. A value.
struct RebuiltMarkers {
  private var last: [TopicPartition: (offset: Int64, timestamp: Int64)] = [:]
  /// The incarnation of each partition's topic, from the group's notes, otherwise from the journal.
  var incarnations: [TopicPartition: UInt32] = [:]

  /// Notes a partition's newest record, or with the timestamp -1 the end of an unreadable stretch.
  mutating func note(_ name: TopicPartition, _ offset: Int64, _ timestamp: Int64) { last[name] = (offset, timestamp) }

  /// The timestamp of a partition's newest record, which is then forgotten.
  mutating func takeTimestamp(of name: TopicPartition) -> Int64? { last.removeValue(forKey: name)?.timestamp }

  /// The markers of registrations and requests.
  ///
  /// - Parameter ends: the offsets at which reading of both ended.
  func all(_ topics: (devices: String, requests: String), ends: [TopicPartition: Int64]) -> [(MarkedPartition, Marker)] {
    let requests = incarnations.keys.filter { $0.topic == topics.requests }.map { name in
      (MarkedPartition.requests(name.partition), marker(of: name, at: ends[name] ?? 0))
    }
    let devices = last.filter { $0.key.topic == topics.devices }.map { name, last in
      (MarkedPartition.devices(name.partition), marker(of: name, at: max(last.offset + 1, ends[name] ?? 0)))
    }
    return requests + devices
  }

  private func marker(of name: TopicPartition, at offset: Int64) -> Marker {
    // The offset below may have no record, as after a transaction. Then the timestamp is the last record's. After an unreadable stretch
    // there is none, so that no worker begins to read inside the stretch.
    let timestamp = last[name].map { $0.offset < offset ? $0.timestamp : -1 } ?? -1
    return Marker(offset: offset, timestamp: timestamp, incarnation: incarnations[name] ?? 0)
  }
}
