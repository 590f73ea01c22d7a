import Notifications
import Redis

/// Reads and writes the markers of all buckets, one call for each bucket.
///
/// Each bucket has a random number, which its creator draws. A bucket that was lost and made again has another number, even with the same
/// markers. A writer that does not know the new number changes nothing.
///
/// A marker that cannot be read counts as missing and is overwritten. A key of another type counts as a lost bucket. `takeDamage` names
/// both.
public final class Markers {
  /// The markers of a bucket, some of which may be missing; nil if Redis does not have the bucket.
  public typealias BucketMarkers = [Marker?]?

  /// The result of writing changes of markers.
  public struct Written: Sendable {
    /// Whether every bucket has every change.
    public var isComplete: Bool { failure == nil && lostBuckets == 0 && mismatches.isEmpty }
    /// Why a call was not answered or was refused.
    public var failure: StoreError?
    /// Set if the only failures are buckets that could not be written.
    public var refusal: StoreError? { only(.writesRefused) }
    /// Set if the only failures are too many calls in flight.
    public var overload: StoreError? { only(.overloaded) }

    private func only(_ code: StoreError.Code) -> StoreError? {
      guard let failure, failure.code == code, lostBuckets == 0, mismatches.isEmpty else { return nil }
      return failure
    }
    /// Buckets that Redis does not have.
    public var lostBuckets = 0
    fileprivate var foreign: StoreError? {
      lostBuckets > 0 ? StoreError(.faulty, "the keys of \(lostBuckets) buckets hold something else than markers") : nil
    }
    /// The changes that some bucket refused, by their index, and the marker found there.
    public var mismatches: [(place: Int, found: Marker?)] = []
  }

  /// The calls to many buckets that end together.
  private final class Operation {
    var remaining: Int
    var failure: StoreError?
    var buckets: [BucketMarkers] = []
    var written = Written()
    /// The partitions whose markers are read; nil for writes.
    let read: [MarkedPartition]?
    let then: (Operation) -> Void

    init(_ remaining: Int, reading: [MarkedPartition]?, _ then: @escaping (Operation) -> Void) {
      (self.remaining, read, self.then) = (remaining, reading, then)
    }

    func ended() {
      remaining -= 1
      if remaining == 0 { then(self) }
    }
  }

  private let shards: Shards
  private let calls = Calls()
  /// The number of each bucket, as it was read last.
  private var numbers: [[UInt8]?]
  private var isAnother = false
  /// The bytes of unreadable markers, as they were read last: writes expect them there.
  private var unreadable: [Int: [MarkedPartition: [UInt8]]] = [:]
  private var damage: Set<String> = []
  /// Why the last read failed.
  public private(set) var failure: StoreError?
  /// Keys that held a value of a wrong type at the last read.
  public private(set) var foreignKeys: [String] = []

  /// Sets each field that has the expected value.
  static let script = RedisScript(file: "markers")

  /// Makes them for these servers.
  public init(_ shards: Shards) {
    self.shards = shards
    numbers = Array(repeating: nil, count: shards.buckets)
  }

  /// Whether a bucket was made again since the last call of this function.
  public func takeChange() -> Bool {
    defer { isAnother = false }
    return isAnother
  }

  /// The unreadable keys and fields found since the last call of this function.
  public func takeDamage() -> [String] {
    defer { damage = [] }
    return damage.sorted()
  }

  /// Reads how far the registry in Redis has applied `devices`; nil if Redis does not answer or has lost buckets.
  public func registryOffsets(of partitions: [Int32]) async -> [Int32: Int64]? {
    guard let buckets = await read(partitions.map { .devices($0) }) else { return nil }
    return Self.lowest(partitions, buckets)
  }

  /// Reads the offset of each requests partition below which all buckets are applied; nil if Redis has lost buckets.
  public func appliedOffsets(of partitions: [Int32]) async throws(StoreError) -> [Int32: Int64]? {
    guard let buckets = await read(partitions.map { .requests($0) }) else {
      throw failure ?? StoreError(.unavailable, "Redis does not answer")
    }
    return Self.lowest(partitions, buckets)
  }

  /// Reads the same, without regard to requests that wait for a schedule in a newer layout than this program reads.
  public func readableOffsets(of partitions: [Int32]) async throws(StoreError) -> [Int32: Int64]? {
    guard let buckets = await read(partitions.map { .requests($0) } + partitions.map { .readableRequests($0) }) else {
      throw failure ?? StoreError(.unavailable, "Redis does not answer")
    }
    let farther = buckets.map { bucket in
      bucket.map { markers in
        zip(markers, markers.dropFirst(partitions.count)).map { applied, readable in
          // After its topic was made again, a partition has another incarnation.
          readable.map { $0.incarnation == applied?.incarnation && $0.offset > applied?.offset ?? 0 } == true ? readable : applied
        }
      }
    }
    return Self.lowest(partitions, farther)
  }

  /// The lowest offset of each partition; nil if a bucket is lost.
  private static func lowest(_ partitions: [Int32], _ buckets: [BucketMarkers]) -> [Int32: Int64]? {
    var lowest: [Int32: Int64] = [:]
    for bucket in buckets {
      guard let bucket else { return nil }
      for (partition, marker) in zip(partitions, bucket) { lowest[partition] = min(lowest[partition] ?? .max, marker?.offset ?? 0) }
    }
    return lowest
  }

  /// Reads the markers of partitions in all buckets; nil when Redis does not answer.
  public func read(_ partitions: [MarkedPartition]) async -> [BucketMarkers]? {
    await withCheckedContinuation { continuation in
      foreignKeys = []
      let finish = { [self] (operation: Operation) in
        failure = operation.failure
        continuation.resume(returning: operation.failure == nil ? operation.buckets : nil)
      }
      begin(Array(0..<shards.buckets), reading: partitions, finish) { bucket in
        calls.command.begin("HMGET")
        calls.command.append(shards.keys.markers(bucket))
        calls.command.append("i")
        for partition in partitions { calls.command.append(partition.field) }
      }
    }
  }

  /// Writes the same changes to all buckets.
  public func write(_ changes: [MarkerChange], _ then: @escaping (Written) -> Void) {
    write(Array(0..<shards.buckets), { _ in changes }, then)
  }

  /// Writes different changes to each bucket. Buckets without a change are not called.
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
      calls.command.begin(Self.script, keys: [shards.keys.markers(bucket)])
      calls.command.append(numbers[bucket] ?? [])
      for change in changes(bucket) {
        calls.command.append(change.partition.field)
        calls.command.append(
          change.isForced ? Array("*".utf8) : change.expected?.bytes ?? unreadable[bucket]?[change.partition] ?? [])
        calls.command.append(change.new.bytes)
      }
    }
  }

  /// Creates missing buckets, in a new or a rebuilt Redis.
  public func create(_ buckets: [Int]) async -> StoreError? {
    await withCheckedContinuation { continuation in
      begin(buckets, { continuation.resume(returning: $0.failure ?? $0.written.foreign) }) { bucket in
        calls.command.begin("HSETNX")
        calls.command.append(shards.keys.markers(bucket))
        calls.command.append("i")
        calls.command.append(Keys.bucketNumber())
      }
    }
  }

  /// Makes one call for each bucket; `write` writes its arguments.
  private func begin(
    _ buckets: [Int], reading: [MarkedPartition]? = nil, _ then: @escaping (Operation) -> Void, _ write: (Int) -> Void
  ) {
    // One more than the calls, so that the operation cannot end while they are being made.
    let operation = Operation(buckets.count + 1, reading: reading, then)
    operation.buckets = Array(repeating: nil, count: shards.buckets)
    for bucket in buckets {
      write(bucket)
      calls.send(over: shards.shard(of: bucket)) { [self] answer in
        switch answer {
        case .success(let reply): replied(reply, bucket, operation)
        case .failure(let error): failed(error, bucket, operation)
        }
        operation.ended()
      }
    }
    operation.ended()
  }

  private func replied(_ reply: RedisReplyView, _ bucket: Int, _ operation: Operation) {
    if let partitions = operation.read {
      // The bucket's number, then the markers.
      guard let number = reply[0]?.bytes else { return }
      // Whoever does not know what lies in the bucket must not raise its markers.
      guard number.count != Keys.bucketNumberBytes || !Layout.bucket.isNewer(number[0]) else {
        operation.failure = .newer(.bucket, number[0], at: shards.keys.markers(bucket))
        return
      }
      if let known = numbers[bucket], !known.elementsEqual(number) { isAnother = true }
      numbers[bucket] = Array(number)
      operation.buckets[bucket] = partitions.indices.map { marker(of: partitions[$0], in: bucket, reply[$0 + 1]?.bytes) }
    } else {
      for place in stride(from: 0, to: reply.count - 1, by: 2) {
        guard let change = reply[place]?.integer else { continue }
        operation.written.mismatches.append((Int(change), reply[place + 1]?.bytes.flatMap(Marker.init)))
      }
    }
  }

  private func marker(of partition: MarkedPartition, in bucket: Int, _ bytes: UnsafeRawBufferPointer?) -> Marker? {
    let marker = bytes.flatMap(Marker.init)
    if let bytes, marker == nil {
      damage.insert("\(shards.keys.markers(bucket)) \(partition.field)")
      unreadable[bucket, default: [:]][partition] = Array(bytes)
    } else {
      unreadable[bucket]?[partition] = nil
    }
    return marker
  }

  private func failed(_ error: StoreError, _ bucket: Int, _ operation: Operation) {
    if error.code == .faulty {
      let key = shards.keys.markers(bucket)
      damage.insert(key)
      if operation.read != nil { return foreignKeys.append(key) }
    }
    if error.code == .bucketLost || error.code == .faulty {
      operation.written.lostBuckets += 1
    } else if operation.failure.map({ $0.weight < error.weight }) ?? true {
      operation.failure = error
    }
  }
}

extension StoreError {
  /// A bucket that may have changed outweighs one that has not. A server's refusal outweighs a full connection.
  fileprivate var weight: Int {
    switch code {
    case .overloaded: 0
    case .writesRefused: 1
    case .unavailable, .bucketLost, .faulty, .refused, .unexplained, .newer: 2
    }
  }
}
