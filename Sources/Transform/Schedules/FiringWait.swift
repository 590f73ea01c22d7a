/// Delays a firing until the earlier requests of its target have ended. Loop-confined.
///
/// A firing is written later than a request that was published shortly before. So its revision is newer, although it shows what an older
/// request scheduled. The newer request may replace or cancel that. It asks the schedule first, even when it is retried, and the firing
/// then finds the schedule ended.
final class FiringWait<Record>: Stage {
  private let ledger: Ledger<Record>
  /// Waiting firings, by the slot of the request that each of them waits for.
  private var waiting: [Slot: [(record: ParkedRecord, content: RequestContent)]] = [:]
  weak var owner: (any StageOwner)?

  init(_ ledger: Ledger<Record>) { self.ledger = ledger }

  /// False: the stage gets firings even when it is inactive.
  var isActive: Bool { false }

  /// The number of waiting firings.
  var count: Int { waiting.values.reduce(0) { $0 + $1.count } }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    guard content.schedule?.isFiring == true, let earlier = ledger.predecessor(of: record.slot) else { return .pass(content) }
    waiting[earlier, default: []].append((record, content))
    return .later
  }

  func drop(_ records: Set<ParkedRecord>) {
    waiting = waiting.mapValues { $0.filter { !records.contains($0.record) } }.filter { !$0.value.isEmpty }
  }

  /// Releases the firings that waited for a slot. They wait again if another earlier request is still in flight.
  func ended(_ slot: Slot) {
    guard !waiting.isEmpty, let firings = waiting.removeValue(forKey: slot) else { return }
    let passed = firings.compactMap { record, content in
      if case .pass(let content) = take(record, content) { (record: record, content: content) } else { nil }
    }
    if !passed.isEmpty { owner?.passed(passed) }
  }
}
