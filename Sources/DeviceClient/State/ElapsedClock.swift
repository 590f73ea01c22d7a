internal import EventLoop
internal import Glibc
internal import Notifications

/// The device's own time by its two clocks, in milliseconds since 1970.
struct LocalTime: Sendable, Equatable {
  /// By the clock on the wall, which the person or the network may set.
  var wall: Int64
  /// By the clock that counts elapsed time.
  var elapsed: Int64

  /// The time by the clock that decides about a trigger: elapsed time for intervals, else the wall's.
  func by(_ trigger: TimedTrigger?) -> Int64 { if case .interval? = trigger?.rule { elapsed } else { wall } }
}

/// The clock that counts elapsed time, also while the machine sleeps: its boot clock, from the wall's time at the first start of a device.
///
/// The state file keeps it. Within one boot of the machine it goes on over starts of the device, whatever happens to the clock on the wall.
/// After another boot it begins with the wall's time, since no clock has counted in between.
struct ElapsedClock: Sendable, Equatable {
  /// Linux' name of this boot of the machine.
  let boot: String
  /// The time minus that of the boot clock, in milliseconds.
  let offset: Int64

  /// The clock of a device.
  ///
  /// - Parameters:
  ///   - former: the one of the state file.
  ///   - boot: the present boot; empty if it is not known.
  ///   - milliseconds: the boot clock.
  init(
    after former: ElapsedClock?, boot: String = Self.presentBoot(), milliseconds: Int64 = Self.bootMilliseconds(),
    wall: Int64 = WallClock.milliseconds()
  ) {
    if let former, former.boot == boot, !boot.isEmpty { self = former } else { self.init(boot: boot, offset: wall - milliseconds) }
  }

  /// The clock as the state file has it.
  init(boot: String, offset: Int64) { (self.boot, self.offset) = (boot, offset) }

  /// The present time.
  func now() -> LocalTime { LocalTime(wall: WallClock.milliseconds(), elapsed: Self.bootMilliseconds() &+ offset) }

  private static func bootMilliseconds() -> Int64 {
    var time = timespec()
    guard clock_gettime(CLOCK_BOOTTIME, &time) == 0 else { preconditionFailure("Linux has a boot clock") }
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  private static func presentBoot() -> String {
    let bytes = AttachmentFolder.beginning(of: "/proc/sys/kernel/random/boot_id", bytes: 64)
    return String(decoding: bytes.prefix { $0 > UInt8(ascii: " ") }, as: UTF8.self)
  }
}
