/// A moment up to which several things may take, one after the other: loop-confined.
public struct Deadline {
  private let loop: EventLoop
  private let end: UInt64

  /// A moment so many milliseconds after the loop's present turn.
  public init(on loop: EventLoop, after milliseconds: Int) {
    self.loop = loop
    end = loop.milliseconds() + UInt64(max(0, milliseconds))
  }

  /// Milliseconds that are left; 0 afterwards.
  public var left: Int {
    let now = loop.milliseconds()
    return now < end ? Int(end - now) : 0
  }

  /// Milliseconds that are left, and at least so many, for what has to be done however late it is.
  public func left(atLeast milliseconds: Int) -> Int { max(left, milliseconds) }
}
