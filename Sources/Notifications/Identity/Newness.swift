extension Revision {
  /// Judges a published position against this revision, which a device keeps for the same identifier.
  ///
  /// This is the one rule of newness. The first row that applies decides:
  ///
  /// | the position | is | what is kept then |
  /// |---|---|---|
  /// | has the kept revision's place, of the same request | that request again | the kept revision |
  /// | has the kept revision's place, of another request, and comes again | stale | |
  /// | has the kept revision's place, of another request | newer | its own revision, but at least a millisecond after the kept one |
  /// | is of the same partition, with a lower offset | stale | |
  /// | is of the same partition, with a higher offset | newer | its own revision, with the kept timestamp where that is later |
  /// | is of another partition or incarnation, and less by timestamp and partition | stale | |
  /// | none of these | newer | its own revision |
  ///
  /// Among published positions the rule is no order: three of two partitions can be newer than each other in a circle. So it matters which of
  /// them came first. What is kept only grows, and kept revisions have one order: `<`.
  ///
  /// The judge applies the rule in Lua: `newness.lua` says what is stale, and `judge.lua` raises. `NewnessTests` holds both to this function.
  /// Lua's numbers are exact up to 2^53, and no timestamp or offset comes near.
  ///
  /// - Parameters:
  ///   - published: the revision that the request's position gives it, or that of its origin.
  ///   - isSameRequest: whether a request at the kept revision's place has its apns-id too.
  ///   - comesAgain: whether the request has an origin.
  /// - Returns: the revision to keep; nil for a stale position.
  public func judging(_ published: Revision, isSameRequest: Bool = true, comesAgain: Bool = false) -> Revision? {
    guard published.partition == partition else { return published < self ? nil : published }
    if published.offset == offset {
      if isSameRequest { return self }
      if comesAgain { return nil }
      return Revision(timestamp: max(timestamp &+ 1, published.timestamp), partition: partition, offset: offset)
    }
    if published.offset < offset { return nil }
    return Revision(timestamp: max(timestamp, published.timestamp), partition: partition, offset: published.offset)
  }
}
