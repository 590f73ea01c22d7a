import EventLoop
import Store

/// What is asked of the lane by who finds the record that takes its process down.
protocol CrashLoopDetectorOwner: AnyObject {
  /// Whether a partition is worked on, whatever it is of, and nothing of it is under way.
  func isIdle(_ index: Int) -> Bool
  /// Has the lane's turn come, from any thread.
  var waker: @Sendable () -> Void { get }
}

/// Finds the record that takes its worker's process down, by what the worker before has counted. Loop-confined.
///
/// A partition that was begun several times at the same offset, and neither left in order nor ever idle, is suspected: its records are then
/// worked on in small groups, each noted before. Where a process ends over a group, the next one makes smaller ones of it, down to single
/// records. One that a process has ended over alone is worked on without its service extensions, which may be what ends processes; one
/// that several have ended over is dead-lettered. The lanes of a process end together, so one of them at a time works on a group.
final class CrashLoopDetector {
  /// The group that a process has ended over.
  struct Group: Equatable {
    var first: Int64
    var count: Int64

    /// How many records may be worked on together from this offset on.
    func step(at offset: Int64) -> Int {
      if offset < first { return Int(min(first - offset, Int64(CrashLoopDetector.groupRecords))) }
      return offset < first + count ? max(1, Int(count) / CrashLoopDetector.narrowing) : CrashLoopDetector.groupRecords
    }
  }

  /// A record that a process has ended over while it worked on nothing else.
  struct Deadly: Equatable {
    let offset: Int64
    let remedy: Remedy
  }

  /// What is done about such a record.
  enum Remedy {
    /// It is worked on without its service extensions.
    case withoutExtensions
    /// No worker survives it: it goes to the dead letters.
    case deadLetter
  }

  /// What is known when partitions are begun.
  struct Suspicion {
    /// Records are to be begun in groups.
    var isBisecting = false
    /// What to look at more closely.
    var groups: [MarkedPartition: Group] = [:]
    /// Records that processes have ended over while they worked on nothing else.
    var deadly: [MarkedPartition: Deadly] = [:]
  }

  /// Begins at one offset after which a partition is suspected.
  static let suspectedAfter = 4
  /// Records of a group at first, and by how much the groups become smaller: 64, 8, 1.
  static let groupRecords = 64
  static let narrowing = 8
  /// Processes that ended while working on a record alone, after which it is dead-lettered.
  static let deadlyAfter = 2
  /// Processes that have ended over a record until it is dead-lettered.
  static let tries = suspectedAfter - 1 + 2 + deadlyAfter
  /// So many records are begun in groups before a lane goes on as usual.
  static let bisectedRecords = 1_000

  private enum Turn {
    case none
    case asked
    /// It is this lane's, which has noted a group of this partition.
    case own(MarkedPartition?)
  }

  private let counts: CrashLoops
  /// Partitions that have begun, by index, until they are idle: no process has ended over them then.
  private var watched: [Int: MarkedPartition] = [:]
  private let turns: CrashLoopTurns
  private let lane: Int
  private var turn = Turn.none
  private let timer: Timer
  private let healthyMilliseconds: Int
  weak var owner: (any CrashLoopDetectorOwner)?

  /// - Parameter healthyMilliseconds: how long after its begin a partition is looked at: a record that takes its worker's process down was read
  ///   by then, and does so sooner or is under way.
  init(on loop: EventLoop, _ counts: CrashLoops, _ turns: CrashLoopTurns, healthyMilliseconds: Int) {
    self.counts = counts
    self.turns = turns
    lane = turns.join()
    self.healthyMilliseconds = healthyMilliseconds
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in clearIdle() }
  }

  /// Partitions are begun at these offsets.
  func began(_ starts: [(partition: MarkedPartition, offset: Int64)]) async throws(StoreError) -> Suspicion {
    var suspicion = Suspicion()
    for (start, known) in zip(starts, try await counts.began(starts, by: turns.process)) {
      guard let known else { continue }
      if known.begins >= Self.suspectedAfter || known.group.count > 0 { suspicion.isBisecting = true }
      if known.group.count > 0 { suspicion.groups[start.partition] = Group(first: known.group.first, count: known.group.count) }
      if known.deadly.ends > 0 {
        let remedy: Remedy = known.deadly.ends >= Self.deadlyAfter ? .deadLetter : .withoutExtensions
        suspicion.deadly[start.partition] = Deadly(offset: known.deadly.offset, remedy: remedy)
      }
    }
    return suspicion
  }

  // MARK: The turn

  /// Whether the lane has, or may have, the turn.
  var hasTurn: Bool { if case .own = turn { true } else { false } }

  /// Whether the lane may begin a group, when the one before is finished; where it may not, it is woken when its turn comes.
  func takeTurn() -> Bool {
    guard let owner else { return false }
    if turns.take(lane, owner.waker) {
      if !hasTurn { turn = .own(nil) }
    } else {
      unmark()
      turn = .asked
    }
    return hasTurn
  }

  /// Whether the lane waited for the turn that is said to have come.
  func turnCame() -> Bool { if case .asked = turn { true } else { false } }

  /// The lane has no further group now.
  func endTurn() {
    unmark()
    turns.giveUp(lane)
    turn = .none
  }

  /// The group that was noted last is finished, and no other follows at once.
  private func unmark() {
    if case .own(let noted?) = turn { counts.unmark([noted], by: turns.process) }
  }

  /// A group of records is going to be worked on, and the one before is finished; `then` is told whether Redis has noted that.
  func mark(_ partition: MarkedPartition, _ group: Group, _ then: @escaping (Bool) -> Void) {
    turn = .own(partition)
    let others = turns.willNote(partition)
    counts.mark(partition, first: group.first, count: group.count, by: turns.process, insteadOf: others) { [turns] error in
      if error == nil { turns.didNote(partition) }
      then(error == nil)
    }
  }

  // MARK: Harmless

  /// Partitions are left in order, or a lane has gone on as usual: nothing is suspected any more.
  func cleared(_ partitions: [MarkedPartition]) { counts.clear(partitions) }

  /// A partition has begun: when it has been idle once, that did no harm.
  func watch(_ partition: MarkedPartition, _ index: Int) {
    watched[index] = partition
    timer.start(after: healthyMilliseconds)
  }

  /// What was held back is read from now on: what has begun shows only now whether it does harm.
  func resumed() {
    if !watched.isEmpty { timer.start(after: healthyMilliseconds) }
  }

  /// Partitions that nobody is to look at any more.
  func left(_ indexes: [Int]) {
    for index in indexes { watched[index] = nil }
  }

  private func clearIdle() {
    let idle = watched.filter { owner?.isIdle($0.key) == true }
    left(Array(idle.keys))
    cleared(Array(idle.values))
    if !watched.isEmpty { timer.start(after: healthyMilliseconds) }
  }

  /// Nothing is looked at any more.
  func close() {
    timer.close()
    turns.giveUp(lane)
    turn = .none
  }
}
