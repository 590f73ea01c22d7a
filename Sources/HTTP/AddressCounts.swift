import EventLoop

/// The number of connections of each address. It has at most one entry for each connection.
struct AddressCounts {
  private let maximum: Int
  private var counts: [PeerNetwork: Int] = [:]

  /// - Parameter maximum: the most connections of one address.
  init(maximum: Int) { self.maximum = maximum }

  /// Counts a connection; false if its address has the maximum already.
  mutating func add(_ network: PeerNetwork) -> Bool {
    let count = counts[network, default: 0]
    guard count < maximum else { return false }
    counts[network] = count + 1
    return true
  }

  /// Removes a counted connection.
  mutating func remove(_ network: PeerNetwork) {
    guard let count = counts[network] else { return }
    counts[network] = count > 1 ? count - 1 : nil
  }
}
