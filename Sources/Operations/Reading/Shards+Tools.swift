import EventLoop
import Store

extension Shards {
  /// How long Redis may take for its first answer, in milliseconds.
  private static let firstAnswerMilliseconds = 10_000

  /// Lends a connection to Redis as soon as it answers.
  static func with<R>(
    on loop: EventLoop, _ store: StoreConfiguration, clientName: String, isolation: isolated (any Actor)? = #isolation,
    _ body: (Shards) async throws -> R
  ) async throws -> R {
    let shards = Shards(on: loop, store, clientName: clientName)
    shards.start()
    defer { shards.close() }
    try await shards.waitUntilUp(withinMilliseconds: firstAnswerMilliseconds)
    return try await body(shards)
  }
}
