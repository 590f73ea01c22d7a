/// More requests wait in mailboxes than fit into memory.
public struct TooManyWaiting: Error, CustomStringConvertible, Sendable {
  /// The limit.
  public let maximum: Int
  /// The error, and what to do.
  public var description: String {
    "more than \(maximum) requests of the range wait for their devices: take a shorter range, or some of the partitions, one after the other"
  }
}
