public import Notifications
public import Store

/// How far a fan-out lane is behind in `deliveries`, by its worker's last report.
public struct FanOutLag: Sendable, Hashable {
  /// The worker's name.
  public var worker: Name
  /// The lane's name in the worker.
  public var lane: String
  /// The partition.
  public var partition: Int32
  /// Records that the lane has not taken yet.
  public var records: Int64
  /// The age of the oldest of them in milliseconds; 0 if there is none, nil if unknown.
  public var behind: Int64?

  /// The lags in a worker's report; empty if the worker is silent, since its report is old then.
  public static func of(_ worker: Workers.Listing) -> [FanOutLag] {
    guard !worker.isSilent, let report = worker.report else { return [] }
    return report.laneLags.map {
      FanOutLag(worker: worker.name, lane: $0.lane, partition: $0.partition, records: $0.records, behind: $0.milliseconds)
    }
  }

  /// The lanes that stand still. They have old records, and no heartbeat, though their process reports.
  ///
  /// - Parameter lifetimeMilliseconds: how long a silent lane counts as alive.
  static func still(_ lags: [FanOutLag], living: [Lanes.Listing], lifetimeMilliseconds: Int64) -> [FanOutLag] {
    let read = Set(living.map(\.partition))
    return lags.filter { $0.records > 0 && $0.behind ?? 0 >= lifetimeMilliseconds && !read.contains($0.partition) }
  }

  /// Greater means further behind. An unknown age is the greatest.
  var rank: (Int64, Int64) { (records == 0 ? 0 : behind ?? .max, records) }
}
