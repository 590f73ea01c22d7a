import EventLoop
import Notifications
import Store

/// The lane's claim of a partition of `deliveries`, and the heartbeat that keeps it.
final class LaneMembership {
  private let lanes: Lanes
  private let name: Name
  private let lifetime: Int
  private var claim: Lanes.Claim?
  private let timer: Timer
  private var isClosed = false
  private var isRefused = false
  /// Gets the events until the lane has left.
  weak var owner: FanOutCore?

  /// - Parameters:
  ///   - name: unique among all lanes.
  ///   - lifetimeMilliseconds: how long a silent lane counts as alive.
  init(on loop: EventLoop, _ lanes: Lanes, name: Name, lifetimeMilliseconds: Int) {
    self.lanes = lanes
    self.name = name
    lifetime = lifetimeMilliseconds
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in beat() }
  }

  /// Claims a partition that no living lane has, else one that the fewest lanes have, and starts the heartbeat.
  func claim(partitions: Int) async throws(StoreError) -> Int32 {
    let claim = try await lanes.claim(name: name, lifetimeMilliseconds: lifetime, partitions: partitions)
    self.claim = claim
    timer.start(after: lifetime / 4, repeating: lifetime / 4)
    return claim.partition
  }

  private func beat() {
    guard let claim else { return }
    lanes.beat(claim) { [weak self] in self?.answered($0) }
  }

  private func answered(_ answer: Result<Bool, StoreError>) {
    switch answer {
    case .success(let wasAlive):
      if isRefused {
        isRefused = false
        owner?.redisRefusesWrites(nil)
      }
      if !isClosed, !wasAlive { owner?.laneLapsed() }
    case .failure(let error):
      // Other parts report a lost connection.
      guard error.code != .unavailable, error.code != .overloaded, !isRefused else { return }
      isRefused = true
      owner?.redisRefusesWrites(error)
    }
  }

  /// Releases the partition.
  func leave() async {
    guard !isClosed else { return }
    isClosed = true
    timer.close()
    owner = nil
    if let claim { await lanes.leave(claim) }
  }
}
