public import EventLoop
import JSON
import Notifications
import Synchronization

/// Whether the process lives and is ready for work: the answers of `/livez` and `/readyz`. For any thread.
///
/// Ready means that every condition is ready. The part that knows a condition sets it, with a reason while it is not ready. Alive means
/// that every watched loop runs. A stuck loop never recovers, so the process needs a restart.
public final class Health: Sendable {
  /// Something that the process, or one of its lanes, needs for its work.
  public struct Condition: Sendable, Hashable {
    /// The condition's name.
    public let name: String
    /// The lane's name; empty for the whole process.
    public let lane: String
    /// Whether it is ready.
    let isReady: Bool
    /// Why it is not ready; empty if it is.
    public let reason: String
    /// Since when, in milliseconds since 1970.
    public let since: Int64
  }

  /// A question to a loop, which the loop answers in its next turn.
  private final class Watch: Sendable {
    let loop: EventLoop
    /// When the unanswered question was asked; 0 if there is none.
    let asked = Atomic<Int64>(0)

    init(_ loop: EventLoop) { self.loop = loop }

    /// Asks again if the last question was answered. Answers how long the open question has waited.
    func silence(at now: Int64) -> Int64 {
      let open = asked.load(ordering: .relaxed)
      if open != 0 { return now - open }
      asked.store(max(now, 1), ordering: .relaxed)
      loop.execute { self.asked.store(0, ordering: .relaxed) }
      return 0
    }
  }

  private struct Table {
    /// In the order in which they were set first.
    var conditions: [Condition] = []
    var watches: [Watch] = []
  }

  private let table: Shared
  private let lane: String
  private let now: @Sendable () -> Int64
  private let limit: Int64

  private final class Shared: Sendable {
    let table = Mutex(Table())
  }

  /// Makes a registry without conditions: ready and alive.
  ///
  /// - Parameters:
  ///   - silence: how long a loop may stand still before the process counts as dead.
  ///   - now: a monotonic clock in milliseconds.
  public convenience init(silence: Duration = .seconds(10), now: @escaping @Sendable () -> Int64 = SteadyClock.milliseconds) {
    self.init(Shared(), "", Int64(silence.wholeMilliseconds), now)
  }

  private init(_ table: Shared, _ lane: String, _ limit: Int64, _ now: @escaping @Sendable () -> Int64) {
    self.table = table
    self.lane = lane
    self.limit = limit
    self.now = now
  }

  /// Makes a view for the conditions of one lane, so that lanes can use the same names.
  public func forLane(_ name: String) -> Health { Health(table, name, limit, now) }

  /// Sets a condition. The first call adds it.
  ///
  /// - Parameters:
  ///   - name: the condition's subject: `redis`, `kafka`, `partitions`, `draining`.
  ///   - reason: why it is not ready, for operators; no secrets.
  public func set(_ name: String, ready: Bool, _ reason: String = "") {
    table.table.withLock { table in
      let place = table.conditions.firstIndex { $0.name == name && $0.lane == lane }
      let former = place.map { table.conditions[$0] }
      let since = former?.isReady == ready ? former?.since : nil
      let condition = Condition(
        name: name, lane: lane, isReady: ready, reason: ready ? "" : reason, since: since ?? WallClock.milliseconds())
      if let place { table.conditions[place] = condition } else { table.conditions.append(condition) }
    }
  }

  /// Removes a condition.
  public func remove(_ name: String) { table.table.withLock { $0.conditions.removeAll { $0.name == name && $0.lane == lane } } }

  /// Removes the conditions of this lane when it has ended, except the one of this name.
  public func removeLane(keeping name: String? = nil) {
    table.table.withLock { $0.conditions.removeAll { $0.lane == lane && $0.name != name } }
  }

  /// Every condition, in the order of their first `set`.
  var conditions: [Condition] { table.table.withLock { $0.conditions } }

  /// Whether every condition is ready.
  public var isReady: Bool { conditions.allSatisfy(\.isReady) }

  /// The conditions that are not ready, in the order of their first `set`.
  public var unready: [Condition] { conditions.filter { !$0.isReady } }

  /// Every condition as JSON: `{"ready":false,"conditions":[{"name":"redis","lane":"transform-0","ready":false,"reason":…,"since":…}]}`.
  public var json: String { snapshot.json }

  /// Whether the process is ready, and the JSON that says why, at the same moment.
  var snapshot: (isReady: Bool, json: String) {
    let conditions = conditions
    let isReady = conditions.allSatisfy(\.isReady)
    let list = conditions.map { condition in
      JSONValue.object(present: [
        "name": condition.name, "lane": condition.lane.isEmpty ? nil : condition.lane, "ready": condition.isReady,
        "reason": condition.isReady ? nil : condition.reason, "since": Timestamp.text(condition.since),
      ])
    }
    return (isReady, JSONValue.object(["ready": isReady, "conditions": list]).text)
  }

  /// Watches whether a loop runs, until `unwatch`, which must come before the loop is closed.
  public func watch(_ loop: EventLoop) { table.table.withLock { $0.watches.append(Watch(loop)) } }

  /// Stops watching a loop.
  public func unwatch(_ loop: EventLoop) { table.table.withLock { $0.watches.removeAll { $0.loop === loop } } }

  /// The loops that stand still for longer than allowed, with the milliseconds; empty if the process is alive.
  ///
  /// Call it from time to time: it asks each loop, and a loop is silent since the first question that it did not answer.
  public func silentLoops() -> [(name: String, milliseconds: Int64)] {
    let watches = table.table.withLock { $0.watches }
    let now = now()
    return watches.compactMap { watch in
      let silence = watch.silence(at: now)
      return silence > limit ? (watch.loop.name, silence) : nil
    }
  }
}
