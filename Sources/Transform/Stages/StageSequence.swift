import Store

/// Whom the sequence of stages tells.
protocol StageSequenceOwner: AnyObject {
  /// Requests have passed all stages, and nobody of their targets is before them any more.
  func passed(_ requests: [(slot: Flow.Slot, content: RequestContent)])
  /// A request has not passed a stage, for this reason: the answer that it was waiting for has come with this.
  func failed(_ slot: Flow.Slot, _ error: StoreError)
}

/// Shows each request to the stages that may answer later, one after the other, and keeps what has passed them and waits for an earlier one
/// of its target. Loop-confined.
final class StageSequence: StageOwner {
  private let stages: [any Stage]
  private let inFlight: InFlight
  /// Whether one of the stages may have to be asked in this turn.
  private var isActive = false
  /// What has passed, and is not judged yet.
  private var gated: [Flow.Slot: RequestContent] = [:]
  weak var owner: (any StageSequenceOwner)?

  init(_ stages: [any Stage], _ inFlight: InFlight) {
    (self.stages, self.inFlight) = (stages, inFlight)
    for stage in stages { stage.owner = self }
  }

  /// Records are going to be started.
  func beginTurn() { isActive = stages.contains { $0.isActive } }

  /// All records that there are now were shown to the stages.
  func flush() { for stage in stages { stage.flush() } }

  /// Ends what the stages hold.
  func close() async { for stage in stages { await stage.close() } }

  /// Shows a request to the stages.
  ///
  /// - Parameter target: the hash of its target.
  /// - Returns: what is judged now; nil where the owner is told later.
  func take(_ slot: Flow.Slot, _ content: RequestContent, target: @autoclosure () -> UInt64) -> RequestContent? {
    guard isActive || inFlight.flow.parked > 0 || content.called != nil else { return content }
    var content = content
    let stage = ask(slot, from: 0, &content)
    switch inFlight.flow.pass(slot, target: target(), at: stage) {
    case .judge: return content
    case .wait:
      if stage == nil { gated[slot] = content }
      return nil
    }
  }

  /// Asks the stages from this one on: the one that answers later, or none.
  private func ask(_ slot: Flow.Slot, from first: Int, _ content: inout RequestContent) -> Int? {
    for stage in stages.indices.dropFirst(first) {
      switch stages[stage].take(inFlight.flow.parked(slot, at: stage), content) {
      case .pass(let next): content = next
      case .later: return stage
      }
    }
    return nil
  }

  func passed(_ requests: [(record: Flow.Parked, content: RequestContent)]) {
    var released: [(slot: Flow.Slot, content: RequestContent)] = []
    for (record, content) in requests where inFlight.flow.isParked(record) {
      var content = content
      inFlight.keep(record.slot, content)
      if let next = ask(record.slot, from: record.stage + 1, &content) {
        inFlight.flow.move(record, to: next)
      } else {
        gated[record.slot] = content
        released += release(inFlight.flow.stageAnswered(record))
      }
    }
    // In this order: what is asked for may fail at once, and tell of requests that are behind these.
    if !released.isEmpty { owner?.passed(released) }
    flush()
  }

  func keep(_ record: Flow.Parked, _ content: RequestContent) {
    if inFlight.flow.isParked(record) { inFlight.keep(record.slot, content) }
  }

  func failed(_ record: Flow.Parked, _ error: StoreError) {
    guard inFlight.flow.isParked(record) else { return }
    let released = release(inFlight.flow.stageFailed(record))
    owner?.failed(record.slot, error)
    if !released.isEmpty { owner?.passed(released) }
  }

  private func release(_ slots: [Flow.Slot]) -> [(slot: Flow.Slot, content: RequestContent)] {
    slots.compactMap { slot in gated.removeValue(forKey: slot).map { (slot, $0) } }
  }

  /// Lets go of the records that wait for nothing but time, and whose assignment is over.
  ///
  /// - Returns: the records, which are to be removed, and what is judged now since nobody is before it any more.
  func takeEnded(_ isOver: (Flow.Slot) -> Bool) -> (ended: [Flow.Slot], passed: [(slot: Flow.Slot, content: RequestContent)]) {
    let (ended, released) = inFlight.flow.takeEnded(isOver)
    var dropped: [Int: Set<Flow.Parked>] = [:]
    for slot in ended {
      gated[slot] = nil
      if let stage = inFlight.flow.stage(of: slot) { dropped[stage, default: []].insert(inFlight.flow.parked(slot, at: stage)) }
    }
    for (stage, records) in dropped { stages[stage].drop(records) }
    return (ended, release(released))
  }
}
