public import Notifications
import Redis

/// How many schedules are pending in Redis, and whose they are. A value.
public struct ScheduleHolders: Sendable, Hashable {
  /// An application and the number of its pending schedules.
  public struct Holder: Sendable, Hashable {
    /// The application.
    public var application: Name
    /// How many are pending.
    public var pending: Int

    /// A holder of its parts.
    init(application: Name, pending: Int) { (self.application, self.pending) = (application, pending) }
  }

  /// Where most due times lie, of all partitions in all buckets. The bound of schedules counts in each of them.
  public struct Place: Sendable, Hashable {
    /// The bucket, and the partition of the requests.
    public var bucket, partition: Int
    /// How many due times lie there.
    public var pending: Int

    /// A place of its parts.
    init(bucket: Int, partition: Int, pending: Int) {
      (self.bucket, self.partition, self.pending) = (bucket, partition, pending)
    }
  }

  /// The applications whose targets have devices, the one with most first.
  public var holders: [Holder]
  /// How many are pending for targets that no device was registered for when they were scheduled.
  public var withoutDevices: Int
  /// The fullest place; nil if nothing is pending.
  public var fullest: Place?

  /// Holders of their parts.
  init(holders: [Holder], withoutDevices: Int, fullest: Place?) {
    (self.holders, self.withoutDevices, self.fullest) = (holders, withoutDevices, fullest)
  }

  /// How many are pending.
  public var pending: Int { holders.reduce(withoutDevices) { $0 + $1.pending } }

  /// Of a bucket no further applications are counted.
  private static let maximumHolders = 1_000

  static let script = RedisScript(file: "schedule-holders")

  /// Reads them, by one command for each bucket.
  ///
  /// - Parameter partitions: how many the topic of requests has.
  public init(in shards: Shards, partitions: Int) async throws(StoreError) {
    var (held, withoutDevices, fullest): ([Name: Int], Int, Place?) = ([:], 0, nil)
    for bucket in 0..<shards.buckets {
      let answer = try await shards.shard(of: bucket).answer(
        Self.script, keys: (0..<partitions).map { .text(shards.keys.dueTimes(bucket, partition: UInt32($0))) },
        arguments: [.integer(Int64(Self.maximumHolders))])
      var elements = (answer.array ?? [])[...]
      withoutDevices += elements.popFirst()?.integer.map { Int($0) } ?? 0
      let (number, most) = (elements.popFirst()?.integer ?? 0, elements.popFirst()?.integer ?? 0)
      if most > fullest?.pending ?? 0 { fullest = Place(bucket: bucket, partition: Int(number) - 1, pending: Int(most)) }
      while let application = elements.popFirst()?.bytes, let pending = elements.popFirst()?.integer {
        held[application.withUnsafeBytes { Name($0) }, default: 0] += Int(clamping: pending)
      }
    }
    self.init(
      holders: held.map { Holder(application: $0, pending: $1) }.sorted {
        $0.pending == $1.pending ? $0.application < $1.application : $0.pending > $1.pending
      }, withoutDevices: withoutDevices, fullest: fullest)
  }
}
