import Store
import Synchronization

/// The one permit of a process to try a group of records that may end it. For all its lanes, from any thread.
///
/// While a lane has a suspected partition, only the lane that has the permit works on a group, which it notes before. So the note of a
/// process that has ended says which group it was trying.
package final class CrashLoopPermit: Sendable {
  private enum Holder {
    case nobody
    /// A lane was given the permit and woken, and has not taken it yet.
    case granted(Int)
    /// A lane processes a group.
    case taken(Int)
  }

  private struct State {
    var lanes = 0
    /// The lanes with suspected partitions.
    var bisecting: Set<Int> = []
    var holder = Holder.nobody
    /// The lanes that wait, the one that has waited longest first, and how each is woken.
    var waiting: [(lane: Int, wake: @Sendable () -> Void)] = []
    /// Partitions for which Redis may have a note of this process.
    var noted: Set<MarkedPartition> = []

    /// Gives the permit to the lane that has waited longest, and returns how that lane is woken.
    mutating func passOn() -> (@Sendable () -> Void)? {
      guard !waiting.isEmpty else {
        holder = .nobody
        return nil
      }
      let next = waiting.removeFirst()
      holder = .granted(next.lane)
      return next.wake
    }
  }

  /// The process's name in its notes. No other process has it.
  let process = String(UInt64.random(in: .min ... .max), radix: 16)
  private let state = Mutex(State())
  private let bisecting = Atomic<Int>(0)

  /// Makes the permit of a process.
  package init() {}

  /// Returns a number for a lane.
  func join() -> Int {
    state.withLock { state in
      state.lanes += 1
      return state.lanes
    }
  }

  /// Whether a lane has suspected partitions.
  var isBisecting: Bool { bisecting.load(ordering: .relaxed) > 0 }

  /// Notes whether a lane has suspected partitions.
  func bisects(_ lane: Int, _ isBisecting: Bool) {
    state.withLock { state in
      if isBisecting { state.bisecting.insert(lane) } else { state.bisecting.remove(lane) }
      bisecting.store(state.bisecting.count, ordering: .relaxed)
    }
  }

  /// Takes the permit for the lane's next group, after the group before is finished.
  ///
  /// - Parameter wake: called from any thread when the lane gets the permit, if another lane has it now.
  /// - Returns: whether the lane has it.
  func take(_ lane: Int, _ wake: @escaping @Sendable () -> Void) -> Bool {
    let (isOwn, next): (Bool, (@Sendable () -> Void)?) = state.withLock { state in
      switch state.holder {
      case .nobody, .granted(lane):
        state.holder = .taken(lane)
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

  /// Returns the permit, or stops waiting for it. It may be called any number of times.
  func giveUp(_ lane: Int) {
    let next: (@Sendable () -> Void)? = state.withLock { state in
      state.waiting.removeAll { $0.lane == lane }
      switch state.holder {
      case .granted(lane), .taken(lane): return state.passOn()
      case .nobody, .granted, .taken: return nil
      }
    }
    next?()
  }

  /// A group of this partition is about to be noted. Returns the other partitions for which the process may have left a note.
  func willNote(_ partition: MarkedPartition) -> [MarkedPartition] {
    state.withLock { state in
      state.noted.insert(partition)
      return state.noted.filter { $0 != partition }
    }
  }

  /// The group of this partition is noted, and no other partition has a note any more.
  func didNote(_ partition: MarkedPartition) { state.withLock { $0.noted = [partition] } }
}
