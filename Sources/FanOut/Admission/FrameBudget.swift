/// How many more frames a device may send: of messages, their fragments, and control frames alike.
///
/// A connection has a hundred in all until its hello. From then on it has so many in each second, and one for each notification that it
/// was sent, whenever its answer comes.
struct FrameBudget {
  static let beforeHello = 100
  /// What a device that answers nothing can save up.
  private static let maximum = 1 << 20

  private var left = Self.beforeHello
  /// The second in which the share of a second was given last.
  private var second = UInt32.max

  /// Whether a further frame is within the bound.
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

  /// The device was sent what it has to answer.
  mutating func sent() { left = min(left + 1, Self.maximum) }
}
