import CUV

/// The time of day, for expirations.
public enum WallClock {
  /// Seconds since 1970.
  public static func seconds() -> Int64 { read().tv_sec }

  /// Milliseconds since 1970.
  public static func milliseconds() -> Int64 {
    let time = read()
    return time.tv_sec * 1000 + Int64(time.tv_usec) / 1000
  }

  private static func read() -> uv_timeval64_t {
    var time = uv_timeval64_t()
    uv_gettimeofday(&time)
    return time
  }
}

/// A monotonic clock for intervals, which does not change with the time of day.
public enum SteadyClock {
  /// Milliseconds since some moment before the process began.
  public static func milliseconds() -> Int64 { nanoseconds() / 1_000_000 }

  /// Nanoseconds since the same moment.
  public static func nanoseconds() -> Int64 { Int64(clamping: uv_hrtime()) }
}
