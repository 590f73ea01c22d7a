import Kafka
import Operations
import Worker

extension ClusterTool {
  /// Checks on a loop of its own. A mismatch says what to type.
  ///
  /// - Parameter further: another solution, as the end of the sentence.
  static func check(
    _ kafka: KafkaConfiguration, _ topics: Topics, further: (ClusterMismatch) -> String? = { _ in nil },
    _ body: (ClusterTool) async throws -> Void
  ) async throws {
    do {
      try await ReadingLog.with(kafka, RequestRules(topics: topics), loop: "check", body)
    } catch let mismatch as ClusterMismatch {
      throw Failure(.wrongUsage, mismatch.sentence + (further(mismatch).map { "; \($0)" } ?? ""))
    }
  }
}

extension ClusterMismatch {
  /// The error, and what to type.
  fileprivate var sentence: String {
    switch self {
    case .otherName(let found, let given):
      let sources = found.map { "ce_source: /carillon/\($0)" }.joined(separator: ", ")
      let choice = found.count == 1 ? "give --cluster \(found[0])" : "give the --cluster of the transform workers"
      return
        "the newest events call their cluster \(found.joined(separator: " and ")) (\(sources)), and not \(given), by which its workers would know nothing of what they have applied: \(choice); where it was renamed, and nothing has been published since, publish a request first"
    case .unusedRedis:
      return
        "no cluster has used this Redis, so all that waits would count as unfinished: give the --redis of the workers; where it has lost everything, run 'carillon rebuild' first; a worker that starts claims it, too"
    case .missingBuckets(let missing, let count):
      return
        "\(missing) of \(count) buckets are missing in this Redis, so notifications that wait there would count as unfinished: give the --buckets of the workers; if Redis has lost the buckets, run 'carillon rebuild' first"
    case .idleGroup(let group, let topic, let others):
      let found = others.map(TerminalText.visible).joined(separator: ", ")
      return
        "the group \(TerminalText.visible(group)) has committed nothing of \(topic) and has no workers, though requests were judged: "
        + (others.isEmpty ? "give the --group of the transform workers" : "give --group, as one of those that have: \(found)")
        + "; where they were away for longer than Kafka keeps a group's offsets, start them first"
    }
  }
}
