import EventLoop
import Glibc

/// A counting semaphore between threads that may block.
///
/// - Note: `@unchecked Sendable` because the pointer is constant, POSIX allows every call from any thread, and it is
///   destroyed with the last reference, when no call can be running.
final class Semaphore: @unchecked Sendable {
  private let pointer: UnsafeMutablePointer<sem_t>

  init() {
    pointer = .allocate(capacity: 1)
    sem_init(pointer, 0, 0)
  }

  deinit {
    sem_destroy(pointer)
    pointer.deallocate()
  }

  func signal() { sem_post(pointer) }

  /// Waits for a signal; false if the time was over first.
  @discardableResult func wait(milliseconds: Int) -> Bool {
    // The system's structure is two words: seconds and nanoseconds.
    withUnsafeTemporaryAllocation(of: Int.self, capacity: 2) { words in
      let end = WallClock.milliseconds() + Int64(milliseconds)
      words[0] = Int(end / 1000)
      words[1] = Int(end % 1000) * 1_000_000
      let until = UnsafeRawPointer(words.baseAddress!).assumingMemoryBound(to: timespec.self)
      while sem_timedwait(pointer, until) != 0 {
        if errno != EINTR { return false }
      }
      return true
    }
  }
}
