import Glibc

/// A clock that only goes forward, for intervals: setting the time of day does not move it.
public enum SteadyClock {
  /// Milliseconds since some moment before the process began.
  public static func milliseconds() -> Int64 { nanoseconds() / 1_000_000 }

  /// Nanoseconds since the same moment.
  public static func nanoseconds() -> Int64 {
    let time = SystemClock.read(CLOCK_MONOTONIC)
    return time.seconds * 1_000_000_000 + time.nanoseconds
  }
}
