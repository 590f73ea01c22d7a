import Kafka
package import Notifications
import Worker

/// A pending schedule.
package struct PendingSchedule: Sendable {
  /// The name of the schedule.
  package var key: ScheduleKey
  /// The state of the schedule.
  package var record: ScheduleRecord
  /// The content of the schedule.
  package var pending: ScheduleRecord.Pending

  /// The due time of the next occurrence, in milliseconds since 1970.
  package var due: Int64 { pending.earliest?.due ?? .max }
}

extension ClusterTool {
  /// Reads the pending schedules from the topic `schedule`, in the order of their due times.
  ///
  /// - Parameters:
  ///   - target: reads only the schedules of this target; nil for all.
  ///   - application: reads only the schedules of this application; nil for all.
  package func pendingSchedules(target: Name?, application: Name?) async throws -> [PendingSchedule] {
    let (found, topic, onRefused) = (Gathered([ScheduleKey: ScheduleRecord]()), rules.topics.schedule, onRefused)
    let stretches = try await Admin.with(kafka) { try await $0.stretches(of: topic) }
    try await reader.read(stretches, "the schedules", isCompacted: true) { record in
      // A tombstone: the schedule ended and was forgotten.
      if record.value == nil || EndTombstone.matches(record) { return }
      guard let key = record.key.flatMap({ ScheduleKey($0) }), let state = record.value.flatMap({ ScheduleRecord($0) }) else {
        return onRefused(SourceCoordinates(record), "it says nothing of a schedule")
      }
      guard target ?? key.target == key.target, application ?? key.application == key.application else { return }
      if found.value[key].map({ !$0.isNewer(than: state) }) ?? true { found.value[key] = state }
    }
    return found.value.compactMap { key, record in record.pending.map { PendingSchedule(key: key, record: record, pending: $0) } }
      .sorted { $0.due == $1.due ? $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) : $0.due < $1.due }
  }
}
