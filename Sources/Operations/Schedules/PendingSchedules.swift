package import EventLoop
package import Kafka
package import Notifications
package import Worker

/// Reads the pending schedules from the topic `schedule`: an actor on a loop.
package actor PendingSchedules: LoopActor {
  /// A pending schedule.
  package struct Entry: Sendable {
    /// The name of the schedule.
    package var key: ScheduleKey
    /// The state of the schedule.
    package var record: ScheduleRecord
    /// The content of the schedule.
    package var pending: ScheduleRecord.Pending
  }

  /// The actor's loop.
  package nonisolated let loop: EventLoop
  private let kafka: KafkaConfiguration
  private let topic: String
  private let onProgress: @Sendable (ReadingProgress) -> Void
  private let onUnreadable: @Sendable (SourceCoordinates) -> Void

  private final class Found {
    var newest: [ScheduleKey: ScheduleRecord] = [:]
  }

  /// Creates a reader of a cluster's schedules.
  ///
  /// - Parameters:
  ///   - onProgress: called while many records are read.
  ///   - onUnreadable: called with the position of each record that is not a schedule.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, onProgress: @escaping @Sendable (ReadingProgress) -> Void,
    onUnreadable: @escaping @Sendable (SourceCoordinates) -> Void
  ) {
    (self.loop, self.kafka, topic) = (loop, kafka, topics.schedule)
    (self.onProgress, self.onUnreadable) = (onProgress, onUnreadable)
  }

  /// Reads the pending schedules, in the order of their due times.
  ///
  /// - Parameters:
  ///   - target: reads only the schedules of this target; nil for all.
  ///   - application: reads only the schedules of this application; nil for all.
  package func read(target: Name?, application: Name?) async throws -> [Entry] {
    let (found, topic, onUnreadable) = (Found(), topic, onUnreadable)
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    let stretches = try await Admin.with(kafka) { try await $0.stretches(of: topic) }
    try await reader.read(stretches, "the schedules", isCompacted: true) { record in
      // A tombstone: the schedule ended and was forgotten.
      if record.value == nil || EndTombstone.matches(record) { return }
      guard let key = record.key.flatMap({ ScheduleKey($0) }), let state = record.value.flatMap({ ScheduleRecord($0) }) else {
        return onUnreadable(SourceCoordinates(record))
      }
      guard target ?? key.target == key.target, application ?? key.application == key.application else { return }
      if found.newest[key].map({ !$0.isNewer(than: state) }) ?? true { found.newest[key] = state }
    }
    return found.newest.compactMap { key, record in record.pending.map { Entry(key: key, record: record, pending: $0) } }
      .sorted { ($0.due, $0.key.bytes) < ($1.due, $1.key.bytes) }
  }
}

extension PendingSchedules.Entry {
  /// The due time of the next occurrence, in milliseconds since 1970.
  package var due: Int64 { pending.earliest?.due ?? .max }
}

private func < (left: (Int64, [UInt8]), right: (Int64, [UInt8])) -> Bool {
  left.0 == right.0 ? left.1.lexicographicallyPrecedes(right.1) : left.0 < right.0
}
