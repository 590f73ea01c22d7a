import Redis

/// The lock and the bucket guards that keep workers away during a rebuild.
public final class Rebuild {
  private let shards: Shards
  private let calls = Calls()
  private let name: String
  private let lockMilliseconds: Int

  /// - Parameters:
  ///   - name: the rebuilder's unique name.
  ///   - lockMilliseconds: how long the lock holds without `keepLock`.
  public init(_ shards: Shards, name: String, lockMilliseconds: Int) {
    (self.shards, self.name, self.lockMilliseconds) = (shards, name, lockMilliseconds)
  }

  /// Takes the lock; answers the holder's name if another rebuilder has it.
  public func lock() async throws(StoreError) -> String? {
    let answer = try await shards.common.answer(
      "SET", .text(Keys.rebuild), .text(name), "NX", "PX", .integer(Int64(lockMilliseconds)))
    if answer.text == "OK" { return nil }
    // A lock always expires. A key without expiration was not written by a rebuilder and would block every rebuild for ever.
    if try await shards.common.answer("PTTL", .text(Keys.rebuild)).integer == -1 {
      try await shards.common.answer("SET", .text(Keys.rebuild), .text(name), "PX", .integer(Int64(lockMilliseconds)))
      return nil
    }
    return try await shards.common.answer("GET", .text(Keys.rebuild)).text ?? "somebody"
  }

  /// Extends the lock.
  public func keepLock() {
    calls.command.begin("PEXPIRE")
    calls.command.append(Keys.rebuild)
    calls.command.append(lockMilliseconds)
    calls.send(over: shards.common) { _ in }
  }

  /// Sets the guards of all buckets.
  public func begin() async throws(StoreError) {
    for bucket in 0..<shards.buckets {
      try await shards.shard(of: bucket).answer("SET", .text(shards.keys.rebuilt(bucket)), .text(name))
    }
  }

  /// Redis was emptied during the rebuild.
  public static let lost = StoreError(.bucketLost, "Redis has lost rebuilt data: start the rebuild again")

  static let endScript = RedisScript(file: "rebuild-end")

  /// Writes the markers of each bucket at once, so that no worker sees a bucket with half of them, and removes the guard with it.
  ///
  /// - Throws: `lost` at a bucket whose guard is missing, or is another rebuild's. It and those after it get no markers.
  public func end(_ markers: [(partition: MarkedPartition, marker: Marker)]) async throws(StoreError) {
    let fields = markers.flatMap { [RedisArgument.text($0.partition.field), .bytes($0.marker.bytes)] }
    let arguments = [.text(name), "i", .bytes(Keys.bucketNumber())] + fields
    for bucket in 0..<shards.buckets {
      let keys: [RedisArgument] = [.text(shards.keys.markers(bucket)), .text(shards.keys.rebuilt(bucket))]
      guard try await shards.shard(of: bucket).answer(Self.endScript, keys: keys, arguments: arguments).integer == 1 else {
        throw Self.lost
      }
    }
    try await shards.common.answer("DEL", .text(Keys.rebuild))
  }
}
