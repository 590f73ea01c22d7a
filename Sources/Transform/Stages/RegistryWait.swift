/// Where requests for persons wait until the registry is complete: before that a person's devices are not known.
final class RegistryWait: Stage {
  private let state: LaneState
  private var waiting: [(record: Flow.Parked, content: RequestContent)] = []
  weak var owner: (any StageOwner)?
  /// How many wait.
  var count: Int { waiting.count }

  init(_ state: LaneState) { self.state = state }

  var isActive: Bool { !state.phase.mayResolveRecipients }

  func take(_ record: Flow.Parked, _ content: RequestContent) -> StageAnswer {
    guard case .person = content.receiver, !state.phase.mayResolveRecipients else { return .pass(content) }
    waiting.append((record, content))
    return .later
  }

  func drop(_ records: Set<Flow.Parked>) { waiting.removeAll { records.contains($0.record) } }

  /// The registry is complete.
  func restored() {
    let waiting = waiting
    self.waiting = []
    if !waiting.isEmpty { owner?.passed(waiting) }
  }
}
