import Kafka
import Worker

/// How many partitions a transform lane's topics have, and which belong together. A value.
///
/// The verdicts on a partition of the requests are written to the partition of the journal with the same number. If somebody adds
/// partitions to the requests alone, the new ones wait and all others continue.
struct TopicPartitions: Equatable {
  /// Of `requests`.
  let requests: Int
  /// Of `journal`.
  let journal: Int
  /// Of `devices`.
  let devices: Int

  init(requests: Int, journal: Int, devices: Int) { (self.requests, self.journal, self.devices) = (requests, journal, devices) }

  /// Counts the partitions.
  ///
  /// - Throws: if a topic is missing.
  init(_ topics: Topics, _ cluster: ClusterDescription) throws(KafkaError) {
    func count(_ topic: String) throws(KafkaError) -> Int {
      guard let found = cluster.topics[topic] else {
        throw KafkaError(.unknownTopicOrPartition, "describe topic \(topic)", message: "there is no such topic")
      }
      return found.partitions.count
    }
    self.init(
      requests: try count(topics.requests), journal: try count(topics.journal), devices: try count(topics.devices))
  }

  /// How many partitions of the requests have one of the journal. Workers that started before and after partitions were added to the
  /// requests find the same number.
  var journaled: Int { max(1, min(requests, journal)) }

  /// The partitions of the requests that the journal has none for.
  var unjournaled: Range<Int32> { Int32(journaled)..<Int32(max(requests, journaled)) }

  /// The partitions of `devices` that belong to the owner of a partition of the requests.
  func devices(of request: Int32) -> [Int32] {
    guard request < journaled else { return [] }
    return stride(from: Int(request), to: devices, by: journaled).map { Int32($0) }
  }
}
