import Notifications
import Store

/// Delays a firing until the earlier requests of its target have ended.
///
/// A firing is written later than a request that was published shortly before. So its revision is newer, although it shows what an older
/// request scheduled. The newer request may replace or cancel that. It asks the schedule first, even when it is retried, and the firing
/// then finds the schedule ended. A request that waits for a newer program delays only the firings of the schedule that it waits for.
final class FiringWait: Stage {
  private var requests: FiringOrder
  /// Waiting firings, by the slot of the request that each of them waits for.
  private var waiting: [Slot: [(record: ParkedRecord, content: RequestContent)]] = [:]
  /// Requests that wait for a newer program, and the schedule that each asked.
  private var newer: [Slot: ScheduleKey] = [:]
  /// Firings of these schedules, which fail when the turn's records were shown: parked ones would delay the later requests of their targets.
  private var failing: [(record: ParkedRecord, key: ScheduleKey)] = []
  weak var owner: (any StageOwner)?

  /// - Parameters:
  ///   - chained: for how many records after the last question of a firing it is kept what the next one may wait for.
  ///   - isInFlight: whether a slot still has the record that was begun after so many others.
  init(chained: UInt64 = 100_000, isInFlight: @escaping (Slot, _ order: UInt64) -> Bool) {
    requests = FiringOrder(chained: chained, isInFlight: isInFlight)
  }

  /// A request that concerns schedules is about to pass the stages.
  ///
  /// - Parameters:
  ///   - order: how many records were begun before it.
  ///   - target: the hash of its target.
  func begins(_ slot: Slot, order: UInt64, _ content: RequestContent, target: UInt64) {
    requests.add(slot, target: target, order: order, precedesFirings: content.schedule?.isFiring != true)
  }

  /// False: the stage gets firings even when it is inactive.
  var isActive: Bool { false }

  /// The number of waiting firings.
  var count: Int { waiting.values.reduce(0) { $0 + $1.count } }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    guard let job = content.schedule, job.isFiring,
      let earlier = requests.predecessor(of: record.slot, where: { newer[$0].map { $0 == job.key } ?? true })
    else { return .pass(content) }
    guard newer[earlier] == nil else {
      failing.append((record, job.key))
      return .later
    }
    waiting[earlier, default: []].append((record, content))
    return .later
  }

  func drop(_ records: Set<ParkedRecord>) {
    failing.removeAll { records.contains($0.record) }
    waiting = waiting.mapValues { $0.filter { !records.contains($0.record) } }.filter { !$0.value.isEmpty }
  }

  func flush() {
    let failed = failing
    failing = []
    for (record, key) in failed {
      let reason = "a firing waits for an earlier request, as that does for a newer program: '\(key.identifier)' of \(key.target)"
      owner?.failed(record, StoreError(.newer(.schedule), reason))
    }
  }

  /// A request waits until a newer program has applied it to a schedule. Firings of other schedules do not wait for it.
  func left(_ record: ParkedRecord, toNewer key: ScheduleKey) {
    guard requests.isInFlight(record.slot, record.order) else { return }
    newer[record.slot] = key
    release(record.slot)
  }

  /// A request has ended, or was dropped.
  func ended(_ slot: Slot) {
    requests.remove(slot)
    if !newer.isEmpty { newer[slot] = nil }
    release(slot)
  }

  /// Releases the firings that waited for a slot. They wait again if another earlier request is still in flight.
  private func release(_ slot: Slot) {
    guard !waiting.isEmpty, let firings = waiting.removeValue(forKey: slot) else { return }
    let passed = firings.compactMap { record, content in
      if case .pass(let content) = take(record, content) { (record: record, content: content) } else { nil }
    }
    if !passed.isEmpty { owner?.passed(passed) }
    flush()
  }
}
