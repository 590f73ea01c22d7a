public import Kafka

/// Partitions of a topic that nobody can write to, and why. A value.
public struct WriteFault: Sendable, Hashable, CustomStringConvertible {
  /// Why they cannot be written.
  public enum Cause: Sendable, Hashable {
    /// They have no leader, or the leader is silent.
    case leaderless
    /// Fewer copies are in sync than `min.insync.replicas` requires.
    case tooFewInSync(minimum: Int)
    /// Enough copies count as in sync, but their brokers are silent and cannot even correct that.
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

  /// The fault in words, with Kafka's name for the writers' error.
  public var description: String {
    let place = "\(topic), partitions \(PartitionNames.text(partitions))"
    return switch cause {
    case .leaderless: "\(place): no broker leads them (LEADER_NOT_AVAILABLE)"
    case .tooFewInSync(let minimum):
      "\(place): fewer copies are in sync than min.insync.replicas=\(minimum) requires (NOT_ENOUGH_REPLICAS)"
    case .silent(let minimum):
      "\(place): too few brokers answer of the copies that min.insync.replicas=\(minimum) requires (REQUEST_TIMED_OUT)"
    }
  }

  /// Finds the faults of some topics. A missing topic has none.
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
