/// A deadline that several steps share.
public struct Deadline {
  private let loop: EventLoop
  private let end: UInt64

  /// Makes a deadline so many milliseconds after the loop's present turn.
  public init(on loop: EventLoop, after milliseconds: Int) {
    self.loop = loop
    end = loop.milliseconds() + UInt64(max(0, milliseconds))
  }

  /// The remaining milliseconds; 0 after the deadline.
  public var left: Int {
    let now = loop.milliseconds()
    return now < end ? Int(end - now) : 0
  }

  /// The remaining milliseconds, but at least this many, for steps that must run in any case.
  public func left(atLeast milliseconds: Int) -> Int { max(left, milliseconds) }
}
