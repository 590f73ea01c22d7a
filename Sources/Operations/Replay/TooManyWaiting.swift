/// More requests wait in mailboxes than fit into memory.
package struct TooManyWaiting: Error, CustomStringConvertible, Sendable {
  /// The limit.
  package let maximum: Int
  /// The error, and what to do.
  package var description: String {
    "more than \(maximum) requests of the range wait for their devices: take a shorter range, or some of the partitions, one after the other"
  }
}
