/// How long a program that has ended is left alone before it is started again: a value, in milliseconds.
struct RestartBackoff: Equatable {
  /// The first wait, and the longest.
  static let (firstMilliseconds, longestMilliseconds) = (100, 30_000)
  /// A program that has given so many answers, or has lived so long, may have ended by one notification that was too much for it.
  static let (provenAnswers, provenMilliseconds) = (100, UInt64(10_000))

  private var next = RestartBackoff.firstMilliseconds

  /// It has ended.
  ///
  /// - Returns: how long to wait; nothing where it had worked.
  mutating func ended(answers: Int, lived: UInt64) -> Int {
    guard answers < Self.provenAnswers, lived < Self.provenMilliseconds else {
      next = Self.firstMilliseconds
      return 0
    }
    defer { next = min(2 * next, Self.longestMilliseconds) }
    return next
  }
}
