import EventLoop

extension NamedThread {
  /// Runs a blocking call on a thread of its own and returns its result.
  ///
  /// For cold paths: each call starts a thread, so a hanging one delays no other.
  static func run<T: Sendable>(_ name: String, _ body: @escaping @Sendable () -> Result<T, KafkaError>) async throws(KafkaError) -> T {
    let result = await withCheckedContinuation { continuation in
      start(name) { continuation.resume(returning: body()) }
    }
    return try result.get()
  }
}
