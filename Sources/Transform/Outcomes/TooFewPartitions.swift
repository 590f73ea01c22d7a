/// A topic has fewer partitions than another one whose partitions it must have the numbers of.
struct TooFewPartitions: Error, CustomStringConvertible {
  let topic: String
  let count: Int
  let needed: Int

  /// What to do.
  var description: String {
    "\(topic) has \(count) partitions and needs \(needed), as many as the requests: add them with Kafka's tools (kafka-topics --alter)"
  }
}
