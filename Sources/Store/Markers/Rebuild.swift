import Redis

/// What keeps others away while Redis is made again: a lock, and guards of the buckets in place of their markers. Loop-confined.
public final class Rebuild {
  private let shards: Shards
  private let calls = Calls()
  private let name: String
  private let lockMilliseconds: Int

  /// - Parameters:
  ///   - name: of the one who rebuilds, unique.
  ///   - lockMilliseconds: how long the lock holds without being kept.
  public init(_ shards: Shards, name: String, lockMilliseconds: Int) {
    (self.shards, self.name, self.lockMilliseconds) = (shards, name, lockMilliseconds)
  }

  /// Takes the lock; answers who has it where that is somebody else.
  public func lock() async throws(StoreError) -> String? {
    let answer = try await shards.common.answer(
      "SET", .text(Keys.rebuild), .text(name), "NX", "PX", .integer(Int64(lockMilliseconds)))
    if answer.text == "OK" { return nil }
    // A lock expires: what does not was put there by somebody else, and would keep everybody away for ever.
    if try await shards.common.answer("PTTL", .text(Keys.rebuild)).integer == -1 {
      try await shards.common.answer("SET", .text(Keys.rebuild), .text(name), "PX", .integer(Int64(lockMilliseconds)))
      return nil
    }
    return try await shards.common.answer("GET", .text(Keys.rebuild)).text ?? "somebody"
  }

  /// Keeps the lock for its time from now on.
  public func keepLock() {
    calls.command.begin("PEXPIRE")
    calls.command.append(Keys.rebuild)
    calls.command.append(lockMilliseconds)
    calls.send(over: shards.common) { _ in }
  }

  /// From now on the buckets are being rebuilt.
  public func begin() async throws(StoreError) {
    for bucket in 0..<shards.buckets {
      try await shards.shard(of: bucket).answer("SET", .text(shards.keys.rebuilt(bucket)), .text(name))
    }
  }

  /// Writes the markers, each bucket's at once, so that no worker sees a bucket without them; then the buckets are rebuilt.
  public func end(_ markers: [(partition: MarkedPartition, marker: Marker)]) async throws(StoreError) {
    let fields = markers.flatMap { [RedisArgument.text($0.partition.field), .bytes($0.marker.bytes)] }
    let all = ["i", .bytes(Keys.bucketNumber())] + fields
    for bucket in 0..<shards.buckets {
      let (shard, key) = (shards.shard(of: bucket), RedisArgument.text(shards.keys.markers(bucket)))
      let type = try await shard.answer("TYPE", key).text
      if type != "hash", type != "none" { try await shard.answer("DEL", key) }
      try await shard.answer(["HSET", key] + all)
    }
    for bucket in 0..<shards.buckets { try await shards.shard(of: bucket).answer("DEL", .text(shards.keys.rebuilt(bucket))) }
    try await shards.common.answer("DEL", .text(Keys.rebuild))
  }
}
