/// The records that the firings of their targets wait for, in the order in which they were begun. Those of targets whose hashes end alike are
/// one chain. No step but the search grows with a flood, and no request costs a look-up in a table.
struct FiringChains {
  /// A record in its chain, and its neighbors there.
  private struct Link {
    let target: UInt64
    /// How many records were begun before it.
    let order: UInt64
    var earlier: Slot?
    var later: Slot?
  }

  /// By slot; nil for records that are in no chain.
  private var links: [Link?] = []
  /// The latest record of each chain, by the last bits of the target's hash.
  private var latest = [Slot?](repeating: nil, count: 4096)

  private func chain(of target: UInt64) -> Int { Int(target % UInt64(latest.count)) }

  /// Adds the latest record of a target, unless it is here already.
  mutating func append(_ slot: Slot, target: UInt64, order: UInt64) {
    while links.count <= slot.index { links.append(nil) }
    guard links[slot.index] == nil else { return }
    let earlier = latest[chain(of: target)]
    links[slot.index] = Link(target: target, order: order, earlier: earlier)
    if let earlier { links[earlier.index]?.later = slot }
    latest[chain(of: target)] = slot
  }

  /// Takes a record out that has ended.
  mutating func remove(_ slot: Slot) {
    guard slot.index < links.count, let link = links[slot.index] else { return }
    links[slot.index] = nil
    if let earlier = link.earlier { links[earlier.index]?.later = link.later }
    if let later = link.later { links[later.index]?.earlier = link.earlier } else { latest[chain(of: link.target)] = link.earlier }
  }

  /// The latest record of a target that was begun before another, and counts.
  func predecessor(target: UInt64, before order: UInt64, where counts: (Slot) -> Bool) -> Slot? {
    var place = latest[chain(of: target)]
    while let slot = place, let link = links[slot.index] {
      if link.target == target, link.order < order, counts(slot) { return slot }
      place = link.earlier
    }
    return nil
  }
}
