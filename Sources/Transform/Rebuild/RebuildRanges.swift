import EventLoop
import Kafka
import Worker

/// The ranges of offsets that a rebuild reads.
struct RebuildRanges {
  private let admin: Admin
  private let topics: Topics
  private let lifetimeMilliseconds: Int64

  /// - Parameter lifetimeMilliseconds: the longest lifetime of a notification; older records matter no more.
  init(_ admin: Admin, _ topics: Topics, lifetimeMilliseconds: Int64) {
    (self.admin, self.topics, self.lifetimeMilliseconds) = (admin, topics, lifetimeMilliseconds)
  }

  func partitions(of topic: String) async throws -> [TopicPartition] {
    try await admin.describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
  }

  /// All records of a topic.
  func whole(of topic: String) async throws -> [(TopicPartition, Range<Int64>)] {
    try await admin.ends(of: try await partitions(of: topic)).map { ($0.key, $0.value) }
  }

  /// The records of a topic of the longest lifetime.
  func recent(of topic: String) async throws -> [(TopicPartition, Range<Int64>)] { try await recent(of: [topic]) }

  /// The requests up to the committed offsets, and the events up to now, both of the longest lifetime.
  func requestsAndEvents(committed: [TopicPartition: Int64]) async throws -> [(TopicPartition, Range<Int64>)] {
    try await recent(of: [topics.requests, topics.events]).map { name, range in
      // A log that has lost its end may end below the committed offset.
      let upper = name.topic == topics.requests ? min(committed[name] ?? 0, range.upperBound) : range.upperBound
      return (name, min(range.lowerBound, upper)..<upper)
    }
  }

  private func recent(of topics: [String]) async throws -> [(TopicPartition, Range<Int64>)] {
    var names: [TopicPartition] = []
    for topic in topics { names += try await partitions(of: topic) }
    let ends = try await admin.ends(of: names)
    let isEmbedded = try await admin.describeCluster().isEmbedded
    // The embedded broker cannot tell offsets by time.
    let starts = isEmbedded ? [:] : try await admin.offsets(of: names, at: WallClock.milliseconds() - lifetimeMilliseconds)
    return names.map { name in
      let range = ends[name] ?? 0..<0
      let lower = max(range.lowerBound, starts[name] ?? range.lowerBound)
      return (name, min(lower, range.upperBound)..<range.upperBound)
    }
  }
}
