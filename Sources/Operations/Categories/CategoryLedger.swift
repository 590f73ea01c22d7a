package import EventLoop
package import Kafka
package import Notifications
package import Worker

/// Reads and writes the published categories of applications: an actor on a loop.
package actor CategoryLedger: LoopActor {
  /// An application with its categories.
  package struct Entry: Sendable, Equatable {
    /// The application.
    package var application: Name
    /// Its published categories.
    package var categories: [NotificationCategory]
  }

  /// The actor's loop.
  package nonisolated let loop: EventLoop
  private let kafka: KafkaConfiguration
  private let topic: String
  private let onProgress: @Sendable (ReadingProgress) -> Void
  private let onRefused: @Sendable (SourceCoordinates, String) -> Void

  private final class Found {
    var all: [Name: [NotificationCategory]] = [:]
  }

  /// Makes a ledger of a cluster.
  ///
  /// - Parameters:
  ///   - onProgress: called during long reads.
  ///   - onRefused: called with the place of each ignored record, and why it is ignored.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, onProgress: @escaping @Sendable (ReadingProgress) -> Void,
    onRefused: @escaping @Sendable (SourceCoordinates, String) -> Void
  ) {
    (self.loop, self.kafka, topic) = (loop, kafka, topics.categories)
    (self.onProgress, self.onRefused) = (onProgress, onRefused)
  }

  /// All applications with published categories, by their names.
  package func read() async throws -> [Entry] {
    let (found, topic, onRefused) = (Found(), topic, onRefused)
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    let stretches = try await Admin.with(kafka) { try await $0.stretches(of: topic) }
    try await reader.read(stretches, "the categories", isCompacted: true) { record in
      guard let application = record.application(onRefused) else { return }
      do throws(FieldError) {
        found.all[application] = try record.value.map { value throws(FieldError) in try ApplicationCategories(json: value).categories }
      } catch {
        onRefused(SourceCoordinates(record), "\(error)")
      }
    }
    return found.all.filter { !$0.value.isEmpty }.map { Entry(application: $0.key, categories: $0.value) }
      .sorted { $0.application < $1.application }
  }

  /// Publishes the categories of an application, in place of the former ones; an empty list removes them.
  package func publish(_ categories: [NotificationCategory], of application: Name) async throws {
    _ = try await Producer.sendOne(
      on: loop, kafka, to: TopicPartition(topic, 0), key: Array(application.utf8), value: ApplicationCategories(categories).value)
  }
}
