/// The phase that all parts of a lane read, and only the lane and its watch of Redis change. Loop-confined.
final class LaneState {
  /// The phase.
  var phase: LanePhase

  init(_ phase: LanePhase = LanePhase()) { self.phase = phase }
}
