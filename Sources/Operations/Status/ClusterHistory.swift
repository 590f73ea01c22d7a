import Kafka
package import Worker

/// The cluster that a report is about, as the command's settings name it.
package struct ReportedCluster: Sendable {
  /// The names of the topics.
  package var topics: Topics
  /// The consumer group of the transform workers.
  package var group: String
  /// How long a silent fan-out lane counts as alive, in milliseconds.
  package var laneLifetime: Int64
  /// The number of buckets.
  package var buckets: Int
  /// The cluster's name.
  package var name: String

  /// A cluster of its parts.
  package init(_ topics: Topics, group: String, laneLifetimeMilliseconds: Int, buckets: Int, name: String) {
    (self.topics, self.group, self.buckets, self.name) = (topics, group, buckets, name)
    laneLifetime = Int64(laneLifetimeMilliseconds)
  }
}

/// Makes reports of samples, and measures rates between them. A value.
package struct ClusterHistory: Sendable {
  private let cluster: ReportedCluster
  private let window: Int64
  /// The samples of the window that know how far the topics are read, oldest first.
  private var samples: [(moment: Int64, lags: [TopicPartition: PartitionLag])] = []

  /// Makes it without samples.
  ///
  /// - Parameter windowMilliseconds: the longest time over which rates are measured.
  package init(_ cluster: ReportedCluster, windowMilliseconds: Int = 30_000) {
    (self.cluster, window) = (cluster, Int64(windowMilliseconds))
  }

  /// Takes a sample, which must be newer than all before, and reports it.
  package mutating func report(_ sample: ClusterSample) -> ClusterReport {
    if let lag = sample.kafka.value?.lag.value {
      samples.append((sample.moment, Dictionary(lag.partitions.map { ($0.partition, $0) }) { first, _ in first }))
      // The last sample that is older than the window begins it.
      while samples.count > 2, sample.moment - samples[1].moment >= window { samples.removeFirst() }
    }
    return ClusterReport(sample, cluster, rates)
  }

  /// The rates of each partition that the newest sample and an earlier one have.
  private var rates: [TopicPartition: LagRates] {
    var counted: [TopicPartition: (written: Int64, finished: Int64, since: Int64)] = [:]
    for (sample, next) in zip(samples, samples.dropFirst()) {
      for (partition, lag) in next.lags {
        // Samples from before a topic was made again do not count.
        guard let old = sample.lags[partition], lag.log.upperBound >= old.log.upperBound else {
          counted[partition] = nil
          continue
        }
        var sum = counted[partition] ?? (0, 0, sample.moment)
        sum.written += lag.log.upperBound - old.log.upperBound
        // Missed records were not finished. A partition that rewinds finishes none meanwhile.
        sum.finished += max(0, (lag.committed ?? 0) - max(old.committed ?? 0, old.log.lowerBound))
        counted[partition] = sum
      }
    }
    guard let now = samples.last?.moment else { return [:] }
    return counted.compactMapValues { sum in
      let seconds = Double(now - sum.since) / 1000
      return seconds > 0 ? LagRates(in: Double(sum.written) / seconds, out: Double(sum.finished) / seconds) : nil
    }
  }
}
