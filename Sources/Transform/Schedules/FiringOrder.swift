/// The requests in flight that concern schedules, and which of them a firing waits for. A value.
///
/// A request is not taken out when it ends: `isInFlight` tells. So an ordinary request costs one write.
struct FiringOrder {
  /// A request that concerns schedules.
  private struct Request {
    /// The hash of its target.
    let target: UInt64
    /// How many records were begun before it.
    let order: UInt64
    /// Later firings of the target wait until it has ended.
    let precedesFirings: Bool
  }

  /// Whether a slot still has the record that was begun after so many others.
  let isInFlight: (Slot, _ order: UInt64) -> Bool
  /// For how many records after the last question of a firing the chains are kept.
  private let chained: UInt64
  /// By slot: the request that it had last.
  private var requests: [Request?] = []
  /// What firings wait for; nil until there is a firing, and when none has asked for long, so that requests pay nothing for it.
  private var chains: FiringChains?
  /// The order of the newest request, and what that was when a firing asked last.
  private var (newest, asked): (UInt64, UInt64) = (0, 0)

  init(chained: UInt64, isInFlight: @escaping (Slot, _ order: UInt64) -> Bool) {
    (self.chained, self.isInFlight) = (chained, isInFlight)
  }

  /// Adds a request. One that is started again, or asks the schedules later than it was begun, is added again.
  mutating func add(_ slot: Slot, target: UInt64, order: UInt64, precedesFirings: Bool) {
    if requests.count <= slot.index { requests += repeatElement(nil, count: slot.index + 1 - requests.count) }
    requests[slot.index] = Request(target: target, order: order, precedesFirings: precedesFirings)
    newest = max(newest, order)
    guard chains != nil else { return }
    if newest - asked > chained {
      chains = nil
    } else if precedesFirings {
      chains?.append(slot, target: target, order: order)
    }
  }

  /// A record has ended.
  mutating func remove(_ slot: Slot) { chains?.remove(slot) }

  /// The request that a firing waits for: one of its target that was begun before it and has not ended. It may have failed meanwhile.
  ///
  /// - Parameter counts: whether the firing has to wait for such a request.
  mutating func predecessor(of slot: Slot, where counts: (Slot) -> Bool) -> Slot? {
    guard slot.index < requests.count, let firing = requests[slot.index] else { preconditionFailure("a firing asks that was not added") }
    asked = newest
    let present = chains ?? makeChains()
    chains = present
    return present.predecessor(target: firing.target, before: firing.order, where: counts)
  }

  private func makeChains() -> FiringChains {
    var chains = FiringChains()
    let known = requests.enumerated().compactMap { index, request -> (slot: Slot, request: Request)? in
      let slot = Slot(number: Int32(index))
      guard let request, request.precedesFirings, isInFlight(slot, request.order) else { return nil }
      return (slot, request)
    }
    for (slot, request) in known.sorted(by: { $0.request.order < $1.request.order }) {
      chains.append(slot, target: request.target, order: request.order)
    }
    return chains
  }
}

/// The records that the firings of their targets wait for, in the order in which they were begun. Those of targets whose hashes end alike are
/// one chain. No step but the search grows with a flood, and no request costs a look-up in a table.
private struct FiringChains {
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
