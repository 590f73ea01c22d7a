import Redis

/// The heartbeats of a group's static members, by Redis' clock.
///
/// A worker beats for all its members at once. The worker that claims a silent member first removes it.
public final class GroupHeartbeats {
  private let shards: Shards
  private let key: RedisArgument

  /// Makes them for a group.
  public init(_ shards: Shards, group: String) {
    self.shards = shards
    key = .text(Keys.members(ofGroup: group))
  }

  /// Stores heartbeats, and lists the latest of each member.
  static let beatScript = RedisScript(file: "member-beat")

  /// Removes members that are still silent.
  static let claimScript = RedisScript(file: "member-claim")

  /// The answer to a heartbeat.
  public struct Answer: Sendable, Hashable {
    /// Redis' time in milliseconds.
    public var time: Int64
    /// How many of the worker's members had no heartbeat there.
    public var new: Int
    /// The last heartbeat of each member of the group.
    public var beats: [String: Int64]
  }

  /// Stores the heartbeats of a worker's members.
  ///
  /// - Parameter forgottenMilliseconds: how long a silent member stays listed.
  public func beat(_ members: [String], forgottenMilliseconds: Int) async throws(StoreError) -> Answer {
    let answer = try await shards.common.answer(
      Self.beatScript, keys: [key], arguments: [.integer(Int64(forgottenMilliseconds))] + members.map { .text($0) })
    guard let parts = answer.array, parts.count == 3, let time = parts[0].integer, let new = parts[1].integer, let list = parts[2].array
    else { throw StoreError(.faulty, "a heartbeat was answered with something else") }
    var beats: [String: Int64] = [:]
    for place in stride(from: 0, to: list.count - 1, by: 2) {
      if let name = list[place].text, let beat = list[place + 1].integer { beats[name] = beat }
    }
    return Answer(time: time, new: Int(new), beats: beats)
  }

  /// Claims members whose last heartbeat is still this one; returns those that no other worker has claimed.
  public func claim(_ silent: [String: Int64]) async throws(StoreError) -> [String] {
    let arguments: [RedisArgument] = silent.flatMap { [.text($0.key), .integer($0.value)] }
    return try await shards.common.answer(Self.claimScript, keys: [key], arguments: arguments).array?.compactMap(\.text) ?? []
  }

  /// Removes the heartbeats of members that have left their group.
  public func leave(_ members: [String]) async {
    for member in members { _ = try? await shards.common.answer("ZREM", key, .text(member)) }
  }
}
