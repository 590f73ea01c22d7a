public import Notifications
import Redis

/// The workers' reports of themselves, each with its last heartbeat by Redis' clock. Loop-confined.
///
/// A worker that ends in order takes its report away. One that was killed leaves it, so that it is seen to be silent, until it is forgotten.
public final class Workers {
  private let shards: Shards

  /// Of these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// How often a worker reports itself, in milliseconds.
  public static let intervalMilliseconds = 5_000
  /// A worker counts as silent after so long, in milliseconds: when three heartbeats have not come.
  public static let silentMilliseconds: Int64 = 17_000
  /// A silent worker is forgotten after so long, in milliseconds.
  public static let forgottenMilliseconds: Int64 = 300_000
  /// Workers that are kept at most: a further one takes the place of the one that has been silent the longest.
  public static let maximum = 1_000

  private static let keys: [RedisArgument] = [.text(Keys.workers), .text(Keys.reports)]

  /// A heartbeat with its report.
  static let beatScript = RedisScript(file: PackageResources.worker_beat_lua)

  /// The end of a worker, unless another process with its name has reported itself since.
  static let leaveScript = RedisScript(file: PackageResources.worker_leave_lua)

  /// The workers that were heard of last.
  static let listScript = RedisScript(file: PackageResources.worker_list_lua)

  /// Says that a worker lives, and how.
  public func beat(_ report: WorkerReport) async throws(StoreError) {
    let answer = try await shards.common.answer(
      Self.beatScript, keys: Self.keys,
      arguments: [
        .text(Self.field(report.name)), .bytes(report.bytes), .integer(Self.forgottenMilliseconds), .integer(Int64(Self.maximum)),
        .integer(Self.silentMilliseconds),
      ])
    if answer.integer == 1 { shards.onMended?(Keys.workers) }
  }

  /// Takes a worker's report away, since it ends in order; that of another process with the same name stays.
  ///
  /// - Parameter started: when the process began, as its report says.
  public func leave(_ name: Name, started: Int64) async throws(StoreError) {
    _ = try await shards.common.answer(
      Self.leaveScript, keys: Self.keys,
      arguments: [.text(Self.field(name)), .integer(started), .integer(Int64(WorkerReport.maximumByteCount))])
  }

  private static func field(_ name: Name) -> String { WorkerReport.cut(name.text, WorkerReport.longText) }

  /// A worker as the others see it.
  public struct Listing: Sendable, Hashable {
    /// Its name.
    public var name: Name
    /// Milliseconds since its last heartbeat.
    public var silentMilliseconds: Int64
    /// What it said then; nil where that cannot be read.
    public var report: WorkerReport?

    /// A worker of its parts.
    public init(name: Name, silentMilliseconds: Int64, report: WorkerReport?) {
      (self.name, self.silentMilliseconds, self.report) = (name, silentMilliseconds, report)
    }

    /// Whether it has been silent for so long that it was killed, or cannot write to Redis.
    public var isSilent: Bool { silentMilliseconds >= Workers.silentMilliseconds }
  }

  /// All workers by name, those included that are silent and not forgotten; no more than `maximum`.
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
      // By another clock, or somebody else's: for how long it has said nothing is not known.
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
