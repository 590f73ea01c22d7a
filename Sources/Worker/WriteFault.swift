public import Kafka

/// Partitions of a topic to which nothing can be written, and why. A value.
public struct WriteFault: Sendable, Hashable, CustomStringConvertible {
  /// Why nothing can be written.
  public enum Cause: Sendable, Hashable {
    /// No broker leads them, or the one that does is silent.
    case leaderless
    /// Fewer copies are in step than `min.insync.replicas` asks for.
    case tooFewInSync(minimum: Int)
    /// Enough copies count as in step, and their brokers are silent: the brokers cannot even agree on that.
    case silent(minimum: Int)
  }

  /// The topic.
  public var topic: String
  /// The partitions, by number.
  public var partitions: [Int32]
  /// Why.
  public var cause: Cause

  /// A fault of its parts.
  public init(_ topic: String, _ partitions: [Int32], _ cause: Cause) {
    (self.topic, self.partitions, self.cause) = (topic, partitions, cause)
  }

  /// What it is, with Kafka's name for the error that writers get.
  public var description: String {
    let place = "\(topic), partitions \(PartitionNames.text(partitions))"
    return switch cause {
    case .leaderless: "\(place): no broker leads them (LEADER_NOT_AVAILABLE)"
    case .tooFewInSync(let minimum):
      "\(place): fewer copies are in step than min.insync.replicas=\(minimum) asks for (NOT_ENOUGH_REPLICAS)"
    case .silent(let minimum):
      "\(place): of the copies that min.insync.replicas=\(minimum) asks for too few brokers answer (REQUEST_TIMED_OUT)"
    }
  }

  /// The faults of some topics; topics that are missing have none.
  ///
  /// - Parameter silent: the brokers that do not answer.
  public static func faults(
    of topics: [String], in cluster: ClusterDescription, _ limits: WriteLimits, silent: Set<Int32> = []
  ) -> [WriteFault] {
    topics.flatMap { topic -> [WriteFault] in
      let minimum = limits.minimumInSync[topic] ?? 1
      var found: [(Cause, [Int32])] = [(.leaderless, []), (.tooFewInSync(minimum: minimum), []), (.silent(minimum: minimum), [])]
      for partition in cluster.topics[topic]?.partitions ?? [] {
        let answering = partition.inSyncBrokers.count { !silent.contains($0) }
        if partition.leader < 0 || silent.contains(partition.leader) {
          found[0].1.append(partition.id)
        } else if partition.inSync < minimum {
          found[1].1.append(partition.id)
        } else if !silent.isEmpty, answering < minimum {
          found[2].1.append(partition.id)
        }
      }
      return found.filter { !$0.1.isEmpty }.map { WriteFault(topic, $0.1, $0.0) }
    }
  }
}
