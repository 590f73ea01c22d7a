import EventLoop

extension NamedThread {
  /// Runs a call that blocks on a thread of its own and returns its result.
  ///
  /// For cold paths: each call starts a thread, so one that hangs delays no other.
  static func run<T: Sendable>(_ name: String, _ body: @escaping @Sendable () -> Result<T, KafkaError>) async throws(KafkaError) -> T {
    let result = await withCheckedContinuation { continuation in
      start(name) { continuation.resume(returning: body()) }
    }
    return try result.get()
  }
}
