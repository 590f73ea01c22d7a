public import Kafka
public import Redis

/// Reads and writes the markers of all buckets, one call for each bucket. Loop-confined.
///
/// A bucket is known by a random number, which it has from whoever made it: one that was lost and made again in the meantime, with the
/// same markers perhaps, is another bucket, and nothing is written to it by those who have not seen that.
public final class MarkerStore: RedisReplyHandler {
  /// What a bucket says: nil when Redis does not have the bucket, else each field's marker, which may be missing.
  public typealias BucketMarkers = [Marker?]?

  /// How a change of markers ended.
  public struct Written: Sendable {
    /// Everything stands in every bucket that was asked for.
    public var isWhole: Bool { failure == nil && lostBuckets == 0 && mismatches.isEmpty }
    /// A call was not answered, or refused.
    public var failure: RedisError?
    /// Some buckets could not be written to, which is all that there is to it.
    public var refusal: RedisError? {
      guard let failure, failure.refusesWrites, lostBuckets == 0, mismatches.isEmpty else { return nil }
      return failure
    }
    /// Buckets that Redis does not have.
    public var lostBuckets = 0
    /// Places of changes that were not made in some bucket, and what stands there instead.
    public var mismatches: [(place: Int, found: Marker?)] = []
  }

  /// Calls to many buckets that end together.
  private final class Operation {
    var remaining: Int
    var failure: RedisError?
    var buckets: [BucketMarkers] = []
    var written = Written()
    let then: (Operation) -> Void

    init(_ remaining: Int, _ then: @escaping (Operation) -> Void) { (self.remaining, self.then) = (remaining, then) }
  }

  private let redis: RedisConnection
  private let keys: RedisKeys
  private var command = RedisCommand()
  private var operations: [UInt32: Operation] = [:]
  private var lastOperation: UInt32 = 0
  /// The number of each bucket, as it was read last.
  private var numbers: [[UInt8]?]
  private var isAnother = false

  /// Sets each field whose value is as expected.
  ///
  /// Keys: the markers of a bucket. Arguments: the bucket's number; per field: field, expected value or empty, new value. Answers `{-2}`
  /// where Redis does not have the bucket, else number and value of each field where something else stands.
  public static let script = RedisScript(
    """
    if redis.call('HGET', KEYS[1], 'i') ~= ARGV[1] then return {-2} end
    local fields = {}
    for i = 2, #ARGV, 3 do fields[#fields + 1] = ARGV[i] end
    local found, others, set = redis.call('HMGET', KEYS[1], unpack(fields)), {}, {}
    for i = 1, #fields do
      local value, expected, new = found[i] or '', ARGV[3 * i], ARGV[3 * i + 1]
      if value == expected then
        set[#set + 1], set[#set + 2] = fields[i], new
      elseif value ~= new then
        others[#others + 1], others[#others + 2] = i - 1, value
      end
    end
    if #set > 0 then redis.call('HSET', KEYS[1], unpack(set)) end
    return others
    """)

  /// Markers on a connection, whose configuration names `script`.
  public init(_ redis: RedisConnection, _ keys: RedisKeys) {
    self.redis = redis
    self.keys = keys
    numbers = Array(repeating: nil, count: keys.buckets)
  }

  /// Whether a bucket turned out to be another one than before; says so once.
  public func takeChange() -> Bool {
    defer { isAnother = false }
    return isAnother
  }

  /// How many buckets there are.
  public var buckets: Int { keys.buckets }

  /// The name of a partition's marker: of `requests`, or of `devices`.
  public static func field(ofRequests partition: Int32) -> String { "q\(partition)" }

  /// The same for a partition of `devices`.
  public static func field(ofDevices partition: Int32) -> String { "d\(partition)" }

  /// Whether the registry in Redis has come as far as `devices` did; nil when Redis does not answer, or has lost buckets.
  ///
  /// - Parameter ends: of the partitions that have records.
  public func hasRegistry(upTo ends: [Int32: Int64]) async -> Bool? {
    let partitions = ends.keys.sorted()
    guard let buckets = await read(partitions.map { Self.field(ofDevices: $0) }) else { return nil }
    var isWhole = true
    for bucket in buckets {
      guard let bucket else { return nil }
      for (partition, marker) in zip(partitions, bucket) where marker?.offset ?? 0 < ends[partition] ?? 0 { isWhole = false }
    }
    return isWhole
  }

  /// Reads the fields of all buckets; nil when Redis does not answer.
  public func read(_ fields: [String]) async -> [BucketMarkers]? {
    await withCheckedContinuation { continuation in
      begin(Array(0..<keys.buckets), { continuation.resume(returning: $0.failure == nil ? $0.buckets : nil) }) { bucket in
        command.begin("HMGET")
        command.append(keys.markers(bucket))
        command.append("i")
        for field in fields { command.append(field) }
      }
    }
  }

  /// Writes the same changes to all buckets.
  public func write(_ changes: [MarkerChange], _ then: @escaping (Written) -> Void) {
    write(Array(0..<keys.buckets), { _ in changes }, then)
  }

  /// Writes changes that differ from bucket to bucket; a bucket without any is left alone.
  public func write(_ changes: [Int: [MarkerChange]]) async -> Written {
    await withCheckedContinuation { continuation in
      write(changes.keys.sorted(), { changes[$0] ?? [] }) { continuation.resume(returning: $0) }
    }
  }

  private func write(_ buckets: [Int], _ changes: (Int) -> [MarkerChange], _ then: @escaping (Written) -> Void) {
    let finish = { (operation: Operation) in
      operation.written.failure = operation.failure
      then(operation.written)
    }
    begin(buckets, finish) { bucket in
      command.begin(Self.script, keys: 1)
      command.append(keys.markers(bucket))
      command.append(numbers[bucket] ?? [])
      for change in changes(bucket) {
        command.append(change.field)
        command.append(change.expected?.bytes ?? [])
        command.append(change.new.bytes)
      }
    }
  }

  /// Makes the buckets that are missing: this Redis is a new one, or was rebuilt.
  public func create(_ buckets: [Int]) async -> RedisError? {
    await withCheckedContinuation { continuation in
      begin(buckets, { continuation.resume(returning: $0.failure) }) { bucket in
        command.begin("HSETNX")
        command.append(keys.markers(bucket))
        command.append("i")
        command.append(RedisKeys.bucketNumber())
      }
    }
  }

  /// One call for each bucket; `write` puts it into `command`.
  private func begin(_ buckets: [Int], _ then: @escaping (Operation) -> Void, _ write: (Int) -> Void) {
    lastOperation &+= 1
    let number = lastOperation
    // One more than calls, so that it does not end while they are made.
    let operation = Operation(buckets.count + 1, then)
    operation.buckets = Array(repeating: nil, count: keys.buckets)
    operations[number] = operation
    for bucket in buckets {
      write(bucket)
      let token = UInt64(number) << 32 | UInt64(bucket)
      if redis.send(command, to: self, token: token) != .accepted {
        redisFailed(token: token, error: RedisError(.notConnected, "Redis takes no calls now"))
      }
    }
    ended(number)
  }

  /// The answer of a bucket.
  public func redisReplied(token: UInt64, reply: RedisReplyView) {
    let (number, bucket) = (UInt32(truncatingIfNeeded: token >> 32), Int(token & 0xFFFF_FFFF))
    guard let operation = operations[number] else { return }
    if reply[0]?.integer == -2 {
      operation.written.lostBuckets += 1
    } else if let number = reply[0]?.bytes {
      // Of a reading call: the bucket's number, then the markers.
      if let known = numbers[bucket], !known.elementsEqual(number) { isAnother = true }
      numbers[bucket] = Array(number)
      operation.buckets[bucket] = (1..<max(1, reply.count)).map { reply[$0]?.bytes.flatMap(Marker.init) }
    } else {
      for place in stride(from: 0, to: reply.count - 1, by: 2) {
        guard let change = reply[place]?.integer else { continue }
        operation.written.mismatches.append((Int(change), reply[place + 1]?.bytes.flatMap(Marker.init)))
      }
    }
    ended(number)
  }

  /// A bucket did not answer.
  public func redisFailed(token: UInt64, error: RedisError) {
    let number = UInt32(truncatingIfNeeded: token >> 32)
    // Buckets that may have changed count for more than those that have not.
    if operations[number]?.failure?.refusesWrites ?? true { operations[number]?.failure = error }
    ended(number)
  }

  private func ended(_ number: UInt32) {
    guard let operation = operations[number] else { return }
    operation.remaining -= 1
    guard operation.remaining == 0 else { return }
    operations[number] = nil
    operation.then(operation)
  }
}

extension Admin {
  /// Where the partitions of `devices` end now, those that have records.
  public func registryEnds(_ topics: Topics) async throws(KafkaError) -> [Int32: Int64] {
    let partitions = try await describe(topic: topics.devices).partitions.map { TopicPartition(topics.devices, $0.id) }
    var ends: [Int32: Int64] = [:]
    for (partition, range) in try await self.ends(of: partitions) where !range.isEmpty { ends[partition.partition] = range.upperBound }
    return ends
  }
}
