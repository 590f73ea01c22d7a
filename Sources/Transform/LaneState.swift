/// The phase that all parts of a lane read, and only the lane changes. Loop-confined.
final class LaneState {
  /// The phase.
  var phase: LanePhase

  init(_ phase: LanePhase = LanePhase()) { self.phase = phase }
}
