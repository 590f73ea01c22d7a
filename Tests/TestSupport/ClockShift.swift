import EventLoop
import Synchronization

/// A clock that a test sets wrong.
public final class ClockShift: Sendable {
  private let shift = Atomic<Int64>(0)

  /// A clock that is right.
  public init() {}

  /// By how many milliseconds it is ahead.
  public var ahead: Int64 {
    get { shift.load(ordering: .relaxed) }
    set { shift.store(newValue, ordering: .relaxed) }
  }

  /// What it shows.
  public var now: Int64 { WallClock.milliseconds() + ahead }
}
