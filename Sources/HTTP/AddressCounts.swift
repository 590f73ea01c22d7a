import EventLoop

/// How many connections each address has: so many entries at most as there are connections.
struct AddressCounts {
  private let most: Int
  private var counts: [PeerNetwork: Int] = [:]

  /// - Parameter most: of one address.
  init(most: Int) { self.most = most }

  /// Counts a connection; false when its address has the most already.
  mutating func add(_ network: PeerNetwork) -> Bool {
    let count = counts[network, default: 0]
    guard count < most else { return false }
    counts[network] = count + 1
    return true
  }

  /// A connection that was counted has gone.
  mutating func remove(_ network: PeerNetwork) {
    guard let count = counts[network] else { return }
    counts[network] = count > 1 ? count - 1 : nil
  }
}
