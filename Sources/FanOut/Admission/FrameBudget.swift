/// How many more frames a device may send, counting messages, fragments and control frames.
///
/// Before its hello a connection has a hundred in all. After it, it has a fixed number in each second, and one more for each notification
/// that it was sent, whenever it answers.
struct FrameBudget {
  static let beforeHello = 100
  /// The most frames that a device saves up by not answering.
  private static let maximum = 1 << 20

  private var left = Self.beforeHello
  /// The second whose share was added last.
  private var second = UInt32.max

  /// Counts a frame; answers whether it is within the limit.
  ///
  /// - Parameter perSecond: a second's share; nil before the hello.
  mutating func takesFrame(at second: UInt32, _ perSecond: Int?) -> Bool {
    if let perSecond, second != self.second {
      self.second = second
      left = max(left, perSecond)
    }
    left -= 1
    return left >= 0
  }

  /// Notes that the device was sent a notification, which it may answer.
  mutating func sent() { left = min(left + 1, Self.maximum) }
}
