import Glibc

/// A clock that only goes forward, for intervals: setting the time of day does not move it.
public enum SteadyClock {
  /// Milliseconds since some moment before the process began.
  public static func milliseconds() -> Int64 { nanoseconds() / 1_000_000 }

  /// Nanoseconds since the same moment.
  public static func nanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
