extension Revision {
  /// Judges a published position against the revision that a device keeps for the identifier.
  ///
  /// This is the rule of newness. The first row that applies decides:
  ///
  /// | the position | is | what is kept then |
  /// |---|---|---|
  /// | has the kept revision's place, of the same request | that request again | the kept revision |
  /// | has the kept revision's place, of another request, and has an origin | stale | |
  /// | has the kept revision's place, of another request | newer | its own revision, but at least a millisecond after the kept one |
  /// | is of the same partition, with a lower offset | stale | |
  /// | is of the same partition, with a higher offset | newer | its own revision, with the kept timestamp where that is later |
  /// | is of another partition or incarnation, and less by timestamp and partition | stale | |
  /// | none of these | newer | its own revision |
  ///
  /// Among published positions the rule is not an order: three of two partitions can be newer than each other in a circle. So it matters
  /// which of them came first. What is kept only grows, and kept revisions have one order: ``isKeptBefore(_:)``.
  ///
  /// Redis applies the rule in Lua: `newness.lua` finds stale positions for the scripts that compare. `known.lua`, a piece of `judge` and
  /// `results`, finds the revision to keep, and only the judge keeps it. `NewnessTests` compares both with this function. Lua's numbers are
  /// exact up to 2^53, far above each timestamp and offset.
  ///
  /// - Parameters:
  ///   - published: the revision of the request's position, or of its origin's.
  ///   - isSameRequest: whether a request at the kept position also has its apns-id.
  ///   - isRedriven: whether the request has an origin.
  /// - Returns: the revision to keep; nil for a stale position.
  public func judging(_ published: Revision, isSameRequest: Bool = true, isRedriven: Bool = false) -> Revision? {
    guard published.partition == partition else { return published.isKeptBefore(self) ? nil : published }
    if sharesPlace(with: published) {
      if isSameRequest { return self }
      if isRedriven { return nil }
      return Revision(timestamp: max(timestamp &+ 1, published.timestamp), partition: partition, offset: offset)
    }
    if published.offset < offset { return nil }
    return Revision(timestamp: max(timestamp, published.timestamp), partition: partition, offset: published.offset)
  }

  /// Whether a published position is stale beside another one.
  public func isOlder(than other: Revision) -> Bool { other.judging(self) == nil }

  /// Whether a published position is newer than another one, and of another place.
  public func isNewer(than other: Revision) -> Bool { !sharesPlace(with: other) && !isOlder(than: other) }

  /// Whether two revisions have one partition and offset. Of one request they are the same, whatever their times.
  public func sharesPlace(with other: Revision) -> Bool { partition == other.partition && offset == other.offset }
}
