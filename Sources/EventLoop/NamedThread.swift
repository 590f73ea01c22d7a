import CUV
import Glibc

/// A named thread for code that may block or never ends.
public enum NamedThread {
  /// Starts a thread, which ends when `body` returns.
  ///
  /// - Parameter name: cut to the 15 bytes that the system keeps.
  public static func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
    let work = Unmanaged.passRetained(
      Box {
        pthread_setname_np(pthread_self(), String(name.prefix(15)))
        body()
      })
    var thread = pthread_t()
    let result = pthread_create(
      &thread, nil,
      { argument in
        guard let argument else { return nil }
        Unmanaged<Box<() -> Void>>.fromOpaque(argument).takeRetainedValue().value()
        return nil
      }, work.toOpaque())
    precondition(result == 0, "the system starts no thread for \(name)")
    pthread_detach(thread)
  }
}
