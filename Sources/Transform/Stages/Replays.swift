import Notifications

/// Tells of requests that come again by a replay whether they were applied before.
///
/// A replay lies in the partition that its first record lies in, so the lane that reads it owns the marker that tells: what lies below was
/// applied, and all that it came to is durable.
struct Replays {
  /// What is to be done with a request.
  enum Answer {
    /// It is judged like any other.
    case judge
    /// Nothing: it was applied before.
    case applied
    /// It is refused.
    case reject(Rejection)
  }

  private let cluster: [UInt8]

  /// - Parameter cluster: the cluster's name.
  init(cluster: String) { self.cluster = Array(cluster.utf8) }

  /// Looks at a request that keeps all other rules.
  ///
  /// - Parameters:
  ///   - position: where its record lies.
  ///   - marker: the offset below which everything of the partition is applied.
  func answer(_ envelope: RequestEnvelope, at position: SourcePosition, marker: Int64) -> Answer {
    guard let origin = envelope.origin, origin.purpose == .replay, origin.cluster.elementsEqual(cluster) else { return .judge }
    guard envelope.sourceTopic.isEmpty, origin.position.partition == position.partition, origin.position.offset < position.offset else {
      return .reject(
        Rejection(
          .badRequestParams, field: "carillon-origin",
          rule: "A replay lies in the topic and in the partition where its first record lies, behind it."))
    }
    return origin.position.offset < marker ? .applied : .judge
  }
}
