/// The phase that all parts of a lane read and change.
final class LaneState {
  /// The phase.
  var phase: LanePhase

  init(_ phase: LanePhase = LanePhase()) { self.phase = phase }
}
