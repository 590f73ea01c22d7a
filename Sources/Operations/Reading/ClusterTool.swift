package import EventLoop
package import Kafka
package import Notifications
package import Worker

/// Reads the topics of a cluster for a person: an actor on a loop. Each tool is an extension.
package actor ClusterTool: LoopActor {
  /// The actor's loop.
  package nonisolated let loop: EventLoop
  /// The cluster's Kafka.
  package let kafka: KafkaConfiguration
  /// The topics, and how requests are read.
  package let rules: RequestRules
  let onProgress: @Sendable (ReadingProgress) -> Void
  let onRefused: @Sendable (SourceCoordinates, String) -> Void
  let onNote: @Sendable (String) -> Void
  private let silenceMilliseconds: Int

  /// Makes a tool for a cluster.
  ///
  /// - Parameters:
  ///   - rules: see ``rules``.
  ///   - silenceMilliseconds: how long Kafka may send nothing before reading fails, though there is more to read.
  ///   - onProgress: called once a second while a topic is read.
  ///   - onRefused: called with the place of each ignored record, and why it is ignored.
  ///   - onNote: called with what a person should know meanwhile, as a sentence.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules, silenceMilliseconds: Int = 60_000,
    onProgress: @escaping @Sendable (ReadingProgress) -> Void = { _ in },
    onRefused: @escaping @Sendable (SourceCoordinates, String) -> Void = { _, _ in },
    onNote: @escaping @Sendable (String) -> Void = { _ in }
  ) {
    (self.loop, self.kafka, self.rules, self.silenceMilliseconds) = (loop, kafka, rules, silenceMilliseconds)
    (self.onProgress, self.onRefused, self.onNote) = (onProgress, onRefused, onNote)
  }

  /// A reader that reports its progress.
  package var reader: TopicReader {
    let reader = TopicReader(on: loop, kafka, silenceMilliseconds: silenceMilliseconds)
    reader.onProgress = onProgress
    return reader
  }
}
