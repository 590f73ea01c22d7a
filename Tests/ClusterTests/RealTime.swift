import EventLoop
import TestSupport

/// The machine's clock, for tests of the complete form that are about time or load: the others of this folder neither sleep nor read it.
enum RealTime {
  /// Milliseconds of a clock that no one sets.
  static func now() -> Int64 { SteadyClock.milliseconds() }

  /// Lets time pass: a fault lasts so long, or a load runs for a while.
  static func pass(_ duration: Duration) async throws { try await Task.sleep(for: duration) }

  /// Lets a moment pass, and gives how long this process, and so most likely the machine, stood still in it, in milliseconds.
  static func passMoment() async -> Int64 {
    let began = now()
    await pause()
    return max(0, now() - began - 200)
  }
}
