import Kafka
package import Notifications
import Worker

/// An application with its published categories.
package struct PublishedCategories: Sendable, Equatable {
  /// The application.
  package var application: Name
  /// Its published categories.
  package var categories: [NotificationCategory]
}

/// Reads and writes the published categories of applications.
extension ClusterTool {
  /// All applications with published categories, by their names.
  package func categories() async throws -> [PublishedCategories] {
    let (found, topic, onRefused) = (Gathered([Name: [NotificationCategory]]()), rules.topics.categories, onRefused)
    let stretches = try await Admin.with(kafka) { try await $0.stretches(of: topic) }
    try await reader.read(stretches, "the categories", isCompacted: true) { record in
      guard let application = record.application(onRefused) else { return }
      do throws(FieldError) {
        found.value[application] = try record.value.map { value throws(FieldError) in try ApplicationCategories(json: value).categories }
      } catch {
        onRefused(SourceCoordinates(record), "\(error)")
      }
    }
    return found.value.filter { !$0.value.isEmpty }.map { PublishedCategories(application: $0.key, categories: $0.value) }
      .sorted { $0.application < $1.application }
  }

  /// Publishes the categories of an application, in place of the former ones; an empty list removes them.
  package func publish(categories: [NotificationCategory], of application: Name) async throws {
    _ = try await Producer.sendOne(
      on: loop, kafka, to: TopicPartition(rules.topics.categories, 0), key: Array(application.utf8),
      value: ApplicationCategories(categories).value)
  }
}
