import Store

/// Gets the requests that leave the sequence of stages.
protocol StageSequenceOwner: AnyObject {
  /// Requests have passed all stages, and so have the earlier ones of their targets. The answer that each waited for has arrived.
  func passed(_ requests: [(slot: Slot, content: RequestContent)])
  /// A call for a request has failed at a stage. The answer that the request waited for has arrived.
  func failed(_ slot: Slot, _ error: StoreError)
  /// The results of slow service extensions are kept for a request's retry.
  func keep(_ slot: Slot, _ called: CalledExtensions)
}

/// Shows each request to the stages, one after the other.
///
/// A stage may answer later. While a record is parked there, the later records of its target pass their stages, but are not judged before
/// it. It delays no other target. A record that is started again takes its place before those that were begun after it. While no record is
/// parked and no stage is active, a request is shown to no stage, unless it has a job for one.
final class StageSequence<Record>: StageOwner {
  private let stages: [any Stage]
  private let ledger: Ledger<Record>
  /// The order of each target.
  private var queues = TargetQueues()
  /// Whether a stage is active in this turn.
  private var isActive = false
  /// The contents of requests that have passed and are not judged yet.
  private var gated: [Slot: RequestContent] = [:]
  weak var owner: (any StageSequenceOwner)?

  init(_ stages: [any Stage], _ ledger: Ledger<Record>) {
    (self.stages, self.ledger) = (stages, ledger)
    for stage in stages { stage.owner = self }
  }

  /// How many requests are parked.
  var parked: Int { queues.count }

  /// Records start in this turn.
  func beginTurn() { isActive = stages.contains { $0.isActive } }

  /// All records of the turn were shown to the stages.
  func flush() { for stage in stages { stage.flush() } }

  /// Closes the stages.
  func close() async { for stage in stages { await stage.close() } }

  /// Shows a request to the stages.
  ///
  /// - Parameter target: the hash of its target; asked for only where the request, or another one, is parked.
  /// - Returns: the content that is judged now; nil if the request waits, and the owner gets it later.
  func take(_ slot: Slot, _ content: RequestContent, target: @autoclosure () -> UInt64) -> RequestContent? {
    guard isActive || queues.count > 0 || content.called != nil || content.schedule?.isOpen == true else { return content }
    var content = content
    let stage = ask(slot, from: 0, &content)
    if stage == nil, queues.count == 0 { return content }
    guard queues.park(slot, target: target(), order: ledger.order(of: slot), at: stage) else { return content }
    ledger.expect(1, of: slot)
    if stage == nil { gated[slot] = content }
    return nil
  }

  /// Asks the stages from this one on. Returns the stage that answers later, or nil.
  private func ask(_ slot: Slot, from first: Int, _ content: inout RequestContent) -> Int? {
    for stage in stages.indices.dropFirst(first) {
      switch stages[stage].take(ParkedRecord(slot: slot, order: ledger.order(of: slot), stage: stage), content) {
      case .pass(let next): content = next
      case .later: return stage
      }
    }
    return nil
  }

  func passed(_ requests: [(record: ParkedRecord, content: RequestContent)]) {
    var released: [(slot: Slot, content: RequestContent)] = []
    for (record, content) in requests where queues.isParked(record) {
      var content = content
      keep(record, content)
      if let next = ask(record.slot, from: record.stage + 1, &content) {
        queues.move(record.slot, to: next)
      } else {
        gated[record.slot] = content
        released += release(queues.passed(record.slot))
      }
    }
    // In this order: a call of a flush may fail at once, and release later requests of these targets.
    if !released.isEmpty { owner?.passed(released) }
    flush()
  }

  func keep(_ record: ParkedRecord, _ content: RequestContent) {
    if let called = content.called, queues.isParked(record) { owner?.keep(record.slot, called) }
  }

  func failed(_ record: ParkedRecord, _ error: StoreError) {
    guard queues.isParked(record) else { return }
    let released = release(queues.remove(record.slot))
    owner?.failed(record.slot, error)
    if !released.isEmpty { owner?.passed(released) }
  }

  private func release(_ slots: [Slot]) -> [(slot: Slot, content: RequestContent)] {
    slots.compactMap { slot in gated.removeValue(forKey: slot).map { (slot, $0) } }
  }

  /// Drops the parked records and the retries whose assignment is over.
  ///
  /// - Returns: these records, which the owner removes, and the requests that are judged now because they waited for one of these.
  func takeRevoked(_ isOver: (Slot) -> Bool) -> (revoked: [Slot], released: [(slot: Slot, content: RequestContent)]) {
    let retrying = ledger.takeRevokedRetries(where: isOver)
    guard queues.count > 0 else { return (retrying, []) }
    let (removed, handles, released) = queues.removeAll(where: isOver)
    for slot in removed { gated[slot] = nil }
    for (stage, records) in Dictionary(grouping: handles, by: \.stage) { stages[stage].drop(Set(records)) }
    return (retrying + removed, release(released))
  }
}
