import Notifications

/// The facts of schedules, until they are judged.
///
/// A firing waits in the part of its apns-id, because the judge of requests finds there whether it took effect. All other facts are in the
/// part of their schedule.
struct ScheduleFacts: ~Copyable {
  private var firings: Spill<ScheduleFact>
  private var bySchedule: Spill<ScheduleFact>

  /// - Parameter parts: the number of parts of the facts of requests.
  init(parts: Int, in folder: String) {
    firings = Spill(parts: parts, in: folder)
    bySchedule = Spill(parts: parts, in: folder)
  }

  /// The number of parts.
  var parts: Int { bySchedule.parts }
  /// The bytes on disk.
  var bytesOnDisk: Int64 { firings.bytesOnDisk + bySchedule.bytesOnDisk }

  /// Adds a fact.
  mutating func add(_ fact: ScheduleFact) throws(SpillError) {
    if case .firing(let firing) = fact.statement, firing.fate == .unknown {
      try firings.add(fact, hash: firing.id.high ^ firing.id.low)
    } else {
      try put(fact)
    }
  }

  private mutating func put(_ fact: ScheduleFact) throws(SpillError) { try bySchedule.add(fact, hash: fact.schedule.id) }

  /// Moves the firings of a part to their schedules. Drops the firings without effect.
  ///
  /// - Parameter fates: the fates of the firings, by their records.
  mutating func settle(part: Int, _ fates: [RecordPlace: ScheduleFact.Fate]) throws(SpillError) {
    for var fact in try firings.take(part) {
      guard case .firing(var firing) = fact.statement,
        let fate = fates[RecordPlace(partition: fact.partition, offset: fact.offset)]
      else { continue }
      firing.fate = fate
      fact.statement = .firing(firing)
      try put(fact)
    }
  }

  /// Takes a part with all facts of its schedules.
  mutating func take(_ part: Int) throws(SpillError) -> [ScheduleFact] { try bySchedule.take(part) }
}
