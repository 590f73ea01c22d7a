import CRdKafka
import Glibc

/// Runs a call that blocks on a thread of its own, and gives its result to whoever awaits it.
///
/// For cold paths: each call starts a thread, so that one that hangs holds up no other.
enum NamedThread {
  /// A closure on its way to its thread.
  private final class Work: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts the thread; the name is cut to the 15 bytes that the system keeps.
  static func start(_ name: String, _ body: @escaping @Sendable () -> Void) {
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
    precondition(result == 0, "no thread can be started for a call that blocks")
    pthread_detach(thread)
  }

  /// Runs `body` there and returns its result.
  static func run<T: Sendable>(_ name: String, _ body: @escaping @Sendable () -> Result<T, KafkaError>) async throws(KafkaError) -> T {
    let result = await withCheckedContinuation { continuation in
      start(name) { continuation.resume(returning: body()) }
    }
    return try result.get()
  }
}
