import Operations
import Synchronization

/// Reports on standard error how far a tool has read, where that takes long.
final class ReadingLog: Sendable {
  private let last = Mutex<(what: String, percent: Int64)>(("", -1))
  private static let step: Int64 = 5

  /// Reports it when it is something new.
  func report(_ progress: ReadingProgress) { report(progress.what, read: progress.read, of: progress.total) }

  /// Reports it when it is something new: something else that is read, or some more of the same.
  func report(_ what: String, read: Int64, of total: Int64) {
    let percent = total > 0 ? read * 100 / total : 100
    let isNew = last.withLock { last in
      guard last.what != what || percent >= last.percent + Self.step || percent < last.percent else { return false }
      last = (what, percent)
      return true
    }
    if isNew { StandardError.line("\(what): \(read) of \(total) (\(percent) %)") }
  }
}
