import Store
import Synchronization

/// The turns that the lanes of a process take with groups of records that may end it, as long as one of them has a suspected partition: one
/// lane at a time works on a noted group, so that the note of a process that has ended tells what it ended over. For all lanes of a process,
/// from any thread.
public final class CrashLoopTurns: Sendable {
  private enum Turn {
    case free
    /// A lane has been woken, and has not come yet.
    case granted(Int)
    /// A lane works on a group.
    case taken(Int)
  }

  private struct State {
    var lanes = 0
    /// Those with suspected partitions.
    var bisecting: Set<Int> = []
    var turn = Turn.free
    /// The lanes that wait, the one that has waited longest first, and how each is woken.
    var waiting: [(lane: Int, wake: @Sendable () -> Void)] = []
    /// Partitions of which the process may have left a note.
    var noted: Set<MarkedPartition> = []

    /// Gives the turn to the one that has waited longest: how it is woken.
    mutating func passOn() -> (@Sendable () -> Void)? {
      guard !waiting.isEmpty else {
        turn = .free
        return nil
      }
      let next = waiting.removeFirst()
      turn = .granted(next.lane)
      return next.wake
    }
  }

  /// What the process is called in its notes; another one is called otherwise.
  let process = String(UInt64.random(in: .min ... .max), radix: 16)
  private let state = Mutex(State())
  private let bisecting = Atomic<Int>(0)

  /// Makes those of a process.
  public init() {}

  /// A number for a lane.
  func join() -> Int {
    state.withLock { state in
      state.lanes += 1
      return state.lanes
    }
  }

  /// Whether a lane has suspected partitions.
  var isBisecting: Bool { bisecting.load(ordering: .relaxed) > 0 }

  /// A lane has suspected partitions, or has none any more.
  func bisects(_ lane: Int, _ isBisecting: Bool) {
    state.withLock { state in
      if isBisecting { state.bisecting.insert(lane) } else { state.bisecting.remove(lane) }
      bisecting.store(state.bisecting.count, ordering: .relaxed)
    }
  }

  /// Takes the turn for the lane's next group, when the one before is finished.
  ///
  /// - Parameter wake: called when the turn comes, from any thread, where it is another lane's now.
  /// - Returns: whether it is this lane's.
  func take(_ lane: Int, _ wake: @escaping @Sendable () -> Void) -> Bool {
    let (isOwn, next): (Bool, (@Sendable () -> Void)?) = state.withLock { state in
      switch state.turn {
      case .free, .granted(lane):
        state.turn = .taken(lane)
        return (true, nil)
      case .taken(lane):
        if state.waiting.isEmpty { return (true, nil) }
        state.waiting.append((lane, wake))
        return (false, state.passOn())
      case .granted, .taken:
        if !state.waiting.contains(where: { $0.lane == lane }) { state.waiting.append((lane, wake)) }
        return (false, nil)
      }
    }
    next?()
    return isOwn
  }

  /// The lane has no further group, or ends; any number of times.
  func giveUp(_ lane: Int) {
    let next: (@Sendable () -> Void)? = state.withLock { state in
      state.waiting.removeAll { $0.lane == lane }
      switch state.turn {
      case .granted(lane), .taken(lane): return state.passOn()
      case .free, .granted, .taken: return nil
      }
    }
    next?()
  }

  /// A group of this partition is going to be noted: the others of which the process may have left a note.
  func willNote(_ partition: MarkedPartition) -> [MarkedPartition] {
    state.withLock { state in
      state.noted.insert(partition)
      return state.noted.filter { $0 != partition }
    }
  }

  /// It is noted, and no other is any more.
  func didNote(_ partition: MarkedPartition) { state.withLock { $0.noted = [partition] } }
}
