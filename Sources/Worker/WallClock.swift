import Glibc

/// The cluster's clock: what expirations are judged by.
public enum WallClock {
  /// Seconds since 1970.
  public static func seconds() -> Int64 { Int64(read().tv_sec) }

  /// Milliseconds since 1970.
  public static func milliseconds() -> Int64 {
    let time = read()
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  private static func read() -> timespec {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time
  }
}
