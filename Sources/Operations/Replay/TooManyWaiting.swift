/// More requests wait for their devices than are kept in memory.
public struct TooManyWaiting: Error, CustomStringConvertible, Sendable {
  /// So many are kept.
  public let maximum: Int
  /// What it is, and the way on.
  public var description: String {
    "more than \(maximum) requests of the range wait for their devices: take a shorter range, or some of the partitions, one after the other"
  }
}
