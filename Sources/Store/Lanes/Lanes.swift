public import Notifications
import Redis

/// The fan-out lanes and the partitions of `deliveries` that they have claimed.
///
/// A sorted set of lanes and the times of their last heartbeats, by Redis' clock.
public final class Lanes {
  private let shards: Shards
  private let calls = Calls()

  /// Makes them for these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// Claims a partition that no living lane has, else one that the fewest lanes have.
  static let claimScript = RedisScript(file: "lane-claim")

  /// Stores a heartbeat.
  static let beatScript = RedisScript(file: "lane-beat")

  /// Lists the lanes, and how long each has been silent.
  static let listScript = RedisScript(file: "lane-list")

  /// A lane and its last heartbeat.
  public struct Listing: Sendable, Hashable {
    /// The partition of `deliveries` that it reads.
    public var partition: Int32
    /// Its name.
    public var name: Name
    /// Milliseconds since its last heartbeat. A dead lane stays in the list until another lane claims a partition.
    public var silentMilliseconds: Int64
  }

  /// The most lanes that a list has, and the most bytes of a lane's name in Redis.
  static let (maximumListed, maximumMember) = (10_000, 4_096)
  /// A heartbeat further in the future, in milliseconds, is from another clock. Its lane counts as silent.
  static let aheadMilliseconds: Int64 = 17_000

  /// Lists all lanes, living or not, by partition and name. If there are too many, it lists those with the latest heartbeats.
  public func list() async throws(StoreError) -> [Listing] {
    let answer = try await shards.common.answer(
      Self.listScript, keys: [.text(Keys.lanes)],
      arguments: [.integer(Int64(Self.maximumListed)), .integer(Int64(Self.maximumMember))])
    var lanes: [Listing] = []
    var elements = (answer.array ?? [])[...]
    while let member = elements.popFirst()?.text, let silent = elements.popFirst()?.integer {
      // Splits scalars, since a combining character after the colon would form one character with it.
      let parts = member.unicodeScalars.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
      guard parts.count == 2, let partition = Int32(parts[0]) else { continue }
      // How long it has been silent is unknown: it counts as longer than any lifetime.
      let isSilent = silent <= -Self.aheadMilliseconds
      lanes.append(
        Listing(partition: partition, name: Name(parts[1]), silentMilliseconds: isSilent ? Int64(Int32.max) : Timestamp.bounded(silent)))
    }
    return lanes.sorted { ($0.partition, $0.name) < ($1.partition, $1.name) }
  }

  /// A lane's claim of a partition.
  public struct Claim: Sendable {
    /// The partition of `deliveries` that it reads.
    public let partition: Int32
    fileprivate let member: String
  }

  /// Claims a partition for a lane.
  ///
  /// - Parameters:
  ///   - name: unique among all lanes.
  ///   - lifetimeMilliseconds: how long a silent lane counts as alive.
  public func claim(name: Name, lifetimeMilliseconds: Int, partitions: Int) async throws(StoreError) -> Claim {
    let answer = try await shards.common.answer(
      Self.claimScript, keys: [.text(Keys.lanes)],
      arguments: [.text(name.text), .integer(Int64(lifetimeMilliseconds)), .integer(Int64(partitions))])
    guard let partition = answer.array?.first?.integer, (0..<Int64(partitions)).contains(partition) else {
      throw StoreError(.faulty, "the claim of a partition was answered with something else")
    }
    if answer.array?.last?.integer == 1 { shards.onMended?(Keys.lanes) }
    return Claim(partition: Int32(partition), member: "\(partition):\(name)")
  }

  /// Stores a heartbeat; answers whether the lane still counted as alive.
  public func beat(_ claim: Claim, _ then: @escaping (Result<Bool, StoreError>) -> Void) {
    calls.command.begin(Self.beatScript, keys: [Keys.lanes])
    calls.command.append(claim.member)
    calls.send(over: shards.common) { [shards] answer in
      then(
        answer.map { reply in
          if reply.integer == 2 { shards.onMended?(Keys.lanes) }
          return reply.integer == 1
        })
    }
  }

  /// Releases the partition. If the call fails, the lane counts as alive until its lifetime is over.
  public func leave(_ claim: Claim) async {
    _ = try? await shards.common.answer("ZREM", .text(Keys.lanes), .text(claim.member))
  }
}
