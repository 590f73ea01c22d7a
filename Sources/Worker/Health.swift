public import EventLoop
import JSON
import Notifications
import Synchronization

/// Whether the process lives and is ready for work: the answers of `/livez` and `/readyz`. For any thread.
///
/// Ready means that every condition is ready. The part that knows a condition sets it, with a reason while it is not ready. Alive means
/// that every watched loop runs. A stuck loop never recovers, so the process needs a restart.
public final class Health: Sendable {
  private struct Condition: Hashable {
    let lane: String
    let name: String
  }

  private struct State {
    var isReady: Bool
    var reason: String
    /// Milliseconds since 1970.
    var since: Int64
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
    var conditions: [Condition: State] = [:]
    var order: [Condition] = []
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
    let condition = Condition(lane: lane, name: name)
    table.table.withLock { table in
      let old = table.conditions[condition]
      if old == nil { table.order.append(condition) }
      let since = old?.isReady == ready ? old?.since : nil
      table.conditions[condition] = State(isReady: ready, reason: ready ? "" : reason, since: since ?? WallClock.milliseconds())
    }
  }

  /// Removes a condition.
  public func remove(_ name: String) {
    let condition = Condition(lane: lane, name: name)
    table.table.withLock { table in
      table.conditions[condition] = nil
      table.order.removeAll { $0 == condition }
    }
  }

  /// Removes the conditions of this lane when it has ended, except the one of this name.
  public func removeLane(keeping name: String? = nil) {
    let lane = lane
    table.table.withLock { table in
      table.order.removeAll { $0.lane == lane && $0.name != name }
      table.conditions = table.conditions.filter { $0.key.lane != lane || $0.key.name == name }
    }
  }

  /// Whether every condition is ready.
  public var isReady: Bool { table.table.withLock { table in table.conditions.values.allSatisfy(\.isReady) } }

  /// Every condition, in the order of their first `set`.
  var states: [(lane: String, name: String, isReady: Bool)] {
    table.table.withLock { table in
      table.order.compactMap { condition in table.conditions[condition].map { (condition.lane, condition.name, $0.isReady) } }
    }
  }

  /// A condition that is not ready.
  public struct Unready: Sendable, Hashable {
    /// The condition's name.
    public var name: String
    /// Its lane; empty for the whole process.
    public var lane: String
    /// Why it is not ready.
    public var reason: String
    /// Since when, in milliseconds since 1970.
    public var since: Int64
  }

  /// The conditions that are not ready, in the order of their first `set`.
  public var unready: [Unready] {
    table.table.withLock { table in
      table.order.compactMap { condition in
        guard let state = table.conditions[condition], !state.isReady else { return nil }
        return Unready(name: condition.name, lane: condition.lane, reason: state.reason, since: state.since)
      }
    }
  }

  /// Every condition as JSON: `{"ready":false,"conditions":[{"name":"redis","lane":"transform-0","ready":false,"reason":…,"since":…}]}`.
  public var json: String { snapshot.json }

  /// Whether the process is ready, and the JSON that says why, at the same moment.
  var snapshot: (isReady: Bool, json: String) {
    let (order, conditions) = table.table.withLock { ($0.order, $0.conditions) }
    let isReady = conditions.values.allSatisfy(\.isReady)
    var writer = JSONWriter()
    writer.openObject()
    writer.member("ready", isReady)
    writer.key("conditions")
    writer.openArray()
    for condition in order {
      guard let state = conditions[condition] else { continue }
      writer.openObject()
      writer.member("name", condition.name)
      if !condition.lane.isEmpty { writer.member("lane", condition.lane) }
      writer.member("ready", state.isReady)
      if !state.isReady { writer.member("reason", state.reason) }
      writer.member("since", Timestamp.text(state.since))
      writer.closeObject()
    }
    writer.closeArray()
    writer.closeObject()
    return (isReady, writer.text)
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
