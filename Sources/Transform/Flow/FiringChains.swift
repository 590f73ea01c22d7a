/// The records that the firings of their targets wait for, chained by target in the order in which they were begun. Nothing here grows with a
/// flood for one target.
struct FiringChains {
  /// A record in the chain of its target, and its neighbors there.
  private struct Link {
    let target: UInt64
    /// How many records were begun before it.
    let order: UInt64
    var earlier: Slot?
    var later: Slot?
  }

  private var links: [Slot: Link] = [:]
  /// The latest record of each chain.
  private var latest: [UInt64: Slot] = [:]

  /// Adds the latest record of a target, unless it is here already.
  mutating func append(_ slot: Slot, target: UInt64, order: UInt64) {
    guard links[slot] == nil else { return }
    let earlier = latest[target]
    links[slot] = Link(target: target, order: order, earlier: earlier)
    if let earlier { links[earlier]?.later = slot }
    latest[target] = slot
  }

  /// Takes a record out that has ended.
  mutating func remove(_ slot: Slot) {
    guard !links.isEmpty, let link = links.removeValue(forKey: slot) else { return }
    if let earlier = link.earlier { links[earlier]?.later = link.later }
    if let later = link.later { links[later]?.earlier = link.earlier } else { latest[link.target] = link.earlier }
  }

  /// The latest record of a target that was begun before another, and counts.
  func predecessor(target: UInt64, before order: UInt64, where counts: (Slot) -> Bool) -> Slot? {
    var place = latest[target]
    while let slot = place, let link = links[slot] {
      if link.order < order, counts(slot) { return slot }
      place = link.earlier
    }
    return nil
  }
}
