import EventLoop

/// How many connections each address has: at most so many entries as there are connections.
struct AddressCounts {
  private let maximum: Int
  private var counts: [PeerNetwork: Int] = [:]

  /// - Parameter maximum: of one address.
  init(maximum: Int) { self.maximum = maximum }

  /// Counts a connection; false when its address has the maximum already.
  mutating func add(_ network: PeerNetwork) -> Bool {
    let count = counts[network, default: 0]
    guard count < maximum else { return false }
    counts[network] = count + 1
    return true
  }

  /// A connection that was counted has gone.
  mutating func remove(_ network: PeerNetwork) {
    guard let count = counts[network] else { return }
    counts[network] = count > 1 ? count - 1 : nil
  }
}
