public import Notifications
public import Store

/// How far a fan-out lane is behind in its partition of `deliveries`, as its worker said a few seconds ago at most.
public struct FanOutLag: Sendable, Hashable {
  /// The worker's name.
  public var worker: Name
  /// What the worker calls the lane.
  public var lane: String
  /// The partition.
  public var partition: Int32
  /// Records that the lane has not taken.
  public var records: Int64
  /// How old the oldest of them is, in milliseconds; 0 where there is none, nil where that is not known.
  public var behind: Int64?

  /// A lag of its parts.
  public init(worker: Name, lane: String, partition: Int32, records: Int64, behind: Int64?) {
    (self.worker, self.lane, self.partition, self.records, self.behind) = (worker, lane, partition, records, behind)
  }

  /// What a worker says of its lanes; nothing where it is silent, for that is long ago.
  public static func of(_ worker: Workers.Listing) -> [FanOutLag] {
    guard !worker.isSilent, let report = worker.report else { return [] }
    return report.laneLags.map {
      FanOutLag(worker: worker.name, lane: $0.lane, partition: $0.partition, records: $0.records, behind: $0.milliseconds)
    }
  }

  /// Those that stand still: they have not taken what came long ago, and their heartbeat has stopped, though their process reports itself.
  ///
  /// - Parameter lifetimeMilliseconds: how long a silent lane counts as alive.
  static func still(_ lags: [FanOutLag], living: [Lanes.Listing], lifetimeMilliseconds: Int64) -> [FanOutLag] {
    let read = Set(living.map(\.partition))
    return lags.filter { $0.records > 0 && $0.behind ?? 0 >= lifetimeMilliseconds && !read.contains($0.partition) }
  }

  /// Later is further behind; what is not known is the furthest.
  var rank: (Int64, Int64) { (records == 0 ? 0 : behind ?? .max, records) }
}
