import Glibc

/// The cluster's clock: what expirations are judged by.
public enum WallClock {
  /// Seconds since 1970.
  public static func seconds() -> Int64 { SystemClock.read(CLOCK_REALTIME).seconds }

  /// Milliseconds since 1970.
  public static func milliseconds() -> Int64 {
    let time = SystemClock.read(CLOCK_REALTIME)
    return time.seconds * 1000 + time.nanoseconds / 1_000_000
  }
}
