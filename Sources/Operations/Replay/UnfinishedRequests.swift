/// Requests that have not come to their end, by where their records lie.
struct UnfinishedRequests: Sendable {
  private var offsets: [Int32: Set<Int64>] = [:]

  /// How many there are.
  var count: Int { offsets.values.reduce(0) { $0 + $1.count } }

  mutating func insert(_ partition: Int32, _ offset: Int64) { offsets[partition, default: []].insert(offset) }

  func contains(_ partition: Int32, _ offset: Int64) -> Bool { offsets[partition]?.contains(offset) ?? false }
}

/// More requests wait for their devices than are kept in memory.
public struct TooManyWaiting: Error, CustomStringConvertible, Sendable {
  /// So many are kept.
  public let maximum: Int
  /// What it is, and the way on.
  public var description: String {
    "more than \(maximum) requests of the range wait for their devices: take a shorter range, or some of the partitions, one after the other"
  }
}
