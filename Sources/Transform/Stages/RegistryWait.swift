import Store

/// Has requests for persons wait until the registry is complete. Before that a person's devices are not known.
final class RegistryWait: Stage {
  private let state: LaneState
  private var waiting: [(record: ParkedRecord, content: RequestContent)] = []
  weak var owner: (any StageOwner)?
  /// How many requests wait.
  var count: Int { waiting.count }

  init(_ state: LaneState) { self.state = state }

  var isActive: Bool { !state.phase.mayResolveRecipients }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    guard content.receiver.device == nil, !state.phase.mayResolveRecipients else { return .pass(content) }
    waiting.append((record, content))
    return .later
  }

  func drop(_ records: Set<ParkedRecord>) { waiting.removeAll { records.contains($0.record) } }

  /// The registry is complete.
  func restored() {
    let waiting = waiting
    self.waiting = []
    if !waiting.isEmpty { owner?.passed(waiting) }
  }
}
