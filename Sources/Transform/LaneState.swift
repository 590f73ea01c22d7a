/// The phase that all parts of a lane read, and that is changed by what they find. Loop-confined.
final class LaneState {
  /// The phase.
  var phase: LanePhase

  init(_ phase: LanePhase = LanePhase()) { self.phase = phase }
}

/// Who does what the lane's phase asks for.
protocol LanePhaseOwner: AnyObject {
  func perform(_ actions: [LanePhase.Action])
}
