import Glibc

/// A counting semaphore between threads that may block.
///
/// - Note: `@unchecked Sendable` because the pointer is constant, POSIX allows every call on a semaphore from any thread, and it is
///   destroyed when the last reference goes, so when nobody can be in a call.
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

  /// Waits for a signal; false when the time was over first.
  @discardableResult func wait(milliseconds: Int) -> Bool {
    var until = timespec()
    clock_gettime(CLOCK_REALTIME, &until)
    let nanoseconds = until.tv_nsec + milliseconds % 1000 * 1_000_000
    until.tv_sec += milliseconds / 1000 + nanoseconds / 1_000_000_000
    until.tv_nsec = nanoseconds % 1_000_000_000
    while sem_timedwait(pointer, &until) != 0 {
      if errno != EINTR { return false }
    }
    return true
  }
}
