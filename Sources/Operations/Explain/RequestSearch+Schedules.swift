import Kafka
import Notifications
import Worker

/// What a request has scheduled: the occurrences, and how the schedule stands.
extension RequestSearch {
  /// What was found of a schedule.
  struct Schedule {
    let key: ScheduleKey
    /// The occurrences' ids, and how many earlier ones are left out.
    var occurrences: [NotificationID] = []
    var omitted = 0
    /// What the topic `schedule` has under the key.
    var record: ScheduleRecord?
  }

  /// The most occurrences that are explained.
  static let maximumOccurrences = 100

  /// Finds the occurrences of what a request has scheduled. They lie behind it in its partition.
  func readOccurrences(of id: NotificationID) async throws(KafkaError) {
    let requests = timelines[id]?.records.filter { $0.schedule != nil } ?? []
    guard let key = requests.last?.schedule, let since = requests.map(\.source.position.timestamp).min() else { return }
    let partitions = Set(requests.map(\.source.position.partition))
    let stretches = try await admin.stretches(of: rules.topics.requests, TimeRange(from: Timestamp.bounded(since) - Self.clocks))
      .filter { partitions.contains($0.partition.partition) }
    var (found, order): ([NotificationID: [PublishedRequest]], [NotificationID]) = ([:], [])
    var omitted = 0
    try await reader.read(stretches, "the occurrences") { [rules] record in
      guard record.header(.firing) != nil else { return }
      let request = PublishedRequest(record, rules)
      guard request.firing?.schedule == id, request.id != id else { return }
      if found[request.id] == nil { order.append(request.id) }
      found[request.id, default: []].append(request)
      if order.count > 2 * Self.maximumOccurrences {
        for id in order.prefix(Self.maximumOccurrences) { found[id] = nil }
        order.removeFirst(Self.maximumOccurrences)
        omitted += Self.maximumOccurrences
      }
    }
    let kept = order.suffix(Self.maximumOccurrences)
    schedule = Schedule(key: key, occurrences: Array(kept), omitted: omitted + order.count - kept.count)
    for occurrence in kept {
      for request in found[occurrence] ?? [] { timelines[occurrence, default: Timeline(occurrence)].add(request) }
    }
  }

  /// Reads how the schedule stands.
  func readStanding() async throws(KafkaError) {
    guard let key = schedule?.key.bytes else { return }
    try await reader.read(try await admin.stretches(of: rules.topics.schedule), "the schedules", isCompacted: true) { [self] record in
      guard record.key?.elementsEqual(key) == true, let state = record.value.flatMap({ ScheduleRecord($0) }) else { return }
      if schedule?.record.map({ !$0.isNewer(than: state) }) ?? true { schedule?.record = state }
    }
  }

  /// Explains the schedule of a request that has this explanation.
  func explanation(of schedule: Schedule, _ request: Explanation, now: Int64) -> ScheduleExplanation {
    var explained = ScheduleExplanation()
    explained.standing = .init(of: request.id, schedule.record, request.steps)
    explained.omitted = schedule.omitted
    // A firing that took no effect is no occurrence. Of the same occurrence there may be another.
    explained.occurrences = schedule.occurrences.compactMap { timelines[$0]?.explanation(now: now) }
      .filter { $0.state != .settled(.replayed) }
      .sorted { ($0.occurrence?.due ?? 0, $0.id) < ($1.occurrence?.due ?? 0, $1.id) }
    return explained
  }
}
