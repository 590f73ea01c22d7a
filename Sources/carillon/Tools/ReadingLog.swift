import Operations
import Synchronization

/// Says on standard error how far a tool has read, where that takes long.
final class ReadingLog: Sendable {
  private let last = Mutex<(what: String, percent: Int64)>(("", -1))
  private static let step: Int64 = 5

  /// Says it when it is something new: another topic, or some more of the same.
  func say(_ progress: ReadingProgress) {
    let percent = progress.total > 0 ? progress.read * 100 / progress.total : 100
    let isNew = last.withLock { last in
      guard last.what != progress.what || percent >= last.percent + Self.step || percent < last.percent else { return false }
      last = (progress.what, percent)
      return true
    }
    if isNew { StandardError.line("\(progress.what): \(progress.read) of \(progress.total) (\(percent) %)") }
  }
}
