/// The wait before a program that has ended is started again. A value, in milliseconds.
struct RestartBackoff: Equatable {
  /// The first wait, and the longest.
  static let (firstMilliseconds, longestMilliseconds) = (100, 30_000)
  /// After this many answers or this lifetime, a single notification may have caused the end.
  static let (provenAnswers, provenMilliseconds) = (100, UInt64(10_000))

  private var next = RestartBackoff.firstMilliseconds

  /// The program has ended.
  ///
  /// - Returns: the wait; zero if it had worked.
  mutating func ended(answers: Int, lived: UInt64) -> Int {
    guard answers < Self.provenAnswers, lived < Self.provenMilliseconds else {
      next = Self.firstMilliseconds
      return 0
    }
    defer { next = min(2 * next, Self.longestMilliseconds) }
    return next
  }
}
