public import Notifications
import Redis

/// The workers' reports, each with its last heartbeat by Redis' clock.
///
/// A worker that stops in order removes its report. The report of a killed worker stays until it is forgotten, so operators see that it is
/// silent.
public final class Workers {
  private let shards: Shards

  /// Makes them for these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// How often a worker reports itself, in milliseconds.
  public static let intervalMilliseconds = 5_000
  /// A worker counts as silent after this time in milliseconds: three missed heartbeats.
  static let silentMilliseconds: Int64 = 17_000
  /// A silent worker is forgotten after this time in milliseconds.
  public static let forgottenMilliseconds: Int64 = 300_000
  /// The most workers that are kept. A further one replaces the one that has been silent the longest.
  static let maximum = 1_000

  private static let keys: [RedisArgument] = [.text(Keys.workers), .text(Keys.reports)]

  /// Stores a heartbeat with its report.
  static let beatScript = RedisScript(file: "worker-beat")

  /// Removes a report, unless another process with its name has reported since.
  static let leaveScript = RedisScript(file: "worker-leave")

  /// Lists the workers with the latest heartbeats.
  static let listScript = RedisScript(file: "worker-list")

  /// Stores a heartbeat with a report.
  public func beat(_ report: WorkerReport) async throws(StoreError) {
    let answer = try await shards.common.answer(
      Self.beatScript, keys: Self.keys,
      arguments: [
        .text(Self.field(report.name)), .bytes(report.bytes), .integer(Self.forgottenMilliseconds), .integer(Int64(Self.maximum)),
        .integer(Self.silentMilliseconds),
      ])
    if answer.integer == 1 { shards.onMended?(Keys.workers) }
  }

  /// Removes the report of a worker that stops in order. The report of another process with the same name stays.
  ///
  /// - Parameter started: when the process began, as its report says.
  public func leave(_ name: Name, started: Int64) async throws(StoreError) {
    _ = try await shards.common.answer(
      Self.leaveScript, keys: Self.keys,
      arguments: [.text(Self.field(name)), .integer(started), .integer(Int64(WorkerReport.maximumByteCount))])
  }

  private static func field(_ name: Name) -> String { WorkerReport.cut(name.text, WorkerReport.longText) }

  /// A worker and its last report.
  public struct Listing: Sendable, Hashable {
    /// Its name.
    public var name: Name
    /// Milliseconds since its last heartbeat.
    public var silentMilliseconds: Int64
    /// Its last report; nil if it cannot be read.
    public var report: WorkerReport?

    /// Whether it has been silent so long that it was killed, or cannot write to Redis.
    public var isSilent: Bool { silentMilliseconds >= Workers.silentMilliseconds }
  }

  /// Lists all workers by name, including silent ones that are not forgotten; at most `maximum`.
  public func list() async throws(StoreError) -> [Listing] {
    let answer = try await shards.common.answer(
      Self.listScript, keys: Self.keys,
      arguments: [
        .integer(Int64(Self.maximum)), .integer(Int64(WorkerReport.longText)), .integer(Int64(WorkerReport.maximumByteCount)),
      ])
    var elements = (answer.array ?? [])[...]
    var workers: [Listing] = []
    while let name = elements.popFirst()?.text, let silent = elements.popFirst()?.integer, let bytes = elements.popFirst()?.bytes {
      guard silent < Self.forgottenMilliseconds else { continue }
      // The heartbeat is from another clock: how long the worker has been silent is unknown.
      let isAhead = silent <= -Self.silentMilliseconds
      workers.append(
        Listing(
          name: Name(WorkerReport.cut(name, WorkerReport.longText)),
          silentMilliseconds: isAhead ? Self.silentMilliseconds : Timestamp.bounded(silent),
          report: WorkerReport(bytes)))
    }
    return workers.sorted { $0.name < $1.name }
  }
}
