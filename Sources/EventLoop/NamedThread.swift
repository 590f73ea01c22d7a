import CUV
import Glibc

/// A named thread for code that may block or never ends.
public enum NamedThread {
  /// A closure on its way to its thread.
  private final class Work: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts a thread, which ends when `body` returns.
  ///
  /// - Parameter name: cut to the 15 bytes that the system keeps.
  public static func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
    let work = Unmanaged.passRetained(Work(name, body))
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
        pthread_setname_np(pthread_self(), String(work.name.prefix(15)))
        work.body()
        return nil
      }, work.toOpaque())
    precondition(result == 0, "the system starts no thread for \(name)")
    pthread_detach(thread)
  }
}
