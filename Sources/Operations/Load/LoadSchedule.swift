import EventLoop

/// When each request of a plan is due. The times follow from the plan alone, never from what was completed (an open loop).
///
/// So a cluster that stalls gets the same load as one that does not, and the stall delays every request that was due in it.
package struct LoadSchedule: Sendable, Hashable {
  /// The number of requests.
  package let total: Int
  private let perSecond: Double
  private let rampSeconds: Double

  /// Makes the schedule of requests.
  package init(_ requests: LoadPlan.Requests) {
    perSecond = Double(requests.rate)
    rampSeconds = Double(requests.rampMilliseconds) / 1000
    // A sum of doubles may lie a little below the number that is meant.
    total = Int(Self.due(by: Double(requests.durationMilliseconds) / 1000, perSecond, rampSeconds) + 1e-6)
  }

  private static func due(by seconds: Double, _ perSecond: Double, _ ramp: Double) -> Double {
    guard seconds > 0 else { return 0 }
    guard seconds < ramp else { return perSecond * (seconds - ramp / 2) }
    return perSecond * seconds * seconds / (2 * ramp)
  }

  /// When a request is due, in nanoseconds after the start.
  package func due(_ number: Int) -> Int64 {
    let ofRamp = perSecond * rampSeconds / 2
    let number = Double(number)
    let seconds = number < ofRamp ? (number * 2 * rampSeconds / perSecond).squareRoot() : rampSeconds + (number - ofRamp) / perSecond
    return Int64(seconds * 1e9)
  }

  /// The number of requests that are due by a time, in nanoseconds after the start.
  package func count(dueBy nanoseconds: Int64) -> Int {
    guard nanoseconds >= 0 else { return 0 }
    var count = min(total, Int(Self.due(by: Double(nanoseconds) / 1e9, perSecond, rampSeconds)) + 1)
    // The estimate may be off by a rounding error.
    while count > 0, due(count - 1) > nanoseconds { count -= 1 }
    while count < total, due(count) <= nanoseconds { count += 1 }
    return count
  }
}

/// When a schedule begins, by both clocks of this process.
struct LoadStart: Sendable, Hashable {
  /// The steady clock's nanoseconds.
  var steady: Int64
  /// Milliseconds since 1970.
  var wall: Int64

  init(steady: Int64, wall: Int64) { (self.steady, self.wall) = (steady, wall) }

  /// Now.
  init() { (steady, wall) = (SteadyClock.nanoseconds(), WallClock.milliseconds()) }

  /// A moment that is near, in milliseconds since 1970.
  init(at wall: Int64) {
    let now = LoadStart()
    (steady, self.wall) = (now.steady + (wall - now.wall) * 1_000_000, wall)
  }
}
