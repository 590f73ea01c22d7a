package import Notifications
package import Store

/// How far a fan-out lane is behind in `deliveries`, by its worker's last report.
package struct FanOutLag: Sendable, Hashable {
  /// The worker's name.
  package var worker: Name
  /// The lane's name in the worker.
  package var lane: String
  /// The partition.
  package var partition: Int32
  /// Records that the lane has not taken yet.
  package var records: Int64
  /// The age of the oldest of them in milliseconds; 0 if there is none, nil if unknown.
  package var behind: Int64?

  /// The lags in a worker's report; empty if the worker is silent, since its report is old then.
  package static func of(_ worker: Workers.Listing) -> [FanOutLag] {
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
