import Kafka
import Worker

/// How many partitions the topics have that a transform lane works through, and which belong together. A value.
///
/// What is judged of a partition of the requests is written to the partition of the journal with the same number. Where somebody has added
/// partitions to the requests alone, those that the journal has none for wait; all others go on.
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
  /// - Throws: where a topic is missing.
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

  /// How many partitions of the requests can be worked through. All workers find the same, those that started before and after partitions
  /// were added to the requests.
  var journaled: Int { max(1, min(requests, journal)) }

  /// The partitions of the requests that wait for the journal to get as many.
  var unjournaled: Range<Int32> { Int32(journaled)..<Int32(max(requests, journaled)) }

  /// The partitions of `devices` that belong to the owner of a partition of the requests.
  func devices(of request: Int32) -> [Int32] {
    guard request < journaled else { return [] }
    return stride(from: Int(request), to: devices, by: journaled).map { Int32($0) }
  }
}
