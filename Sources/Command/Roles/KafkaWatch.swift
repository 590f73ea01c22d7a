import Kafka
import Worker

/// Whether Kafka answers, as the readiness says it.
///
/// The clients of the lanes cannot tell: librdkafka says nothing of a broker that hangs, and nothing of one that is back. So a client that
/// does nothing else asks now and then.
struct KafkaWatch: Sendable {
  let kafka: KafkaConfiguration
  let logger: Logger
  let health: Health

  private static let pause = Duration.seconds(2)
  private static let timeoutMilliseconds: Int32 = 3_000
  /// One broker of several that hangs may be the one that was asked.
  private static let failures = 2

  /// Asks until it is cancelled.
  func run() async {
    guard let admin = try? Admin(kafka, timeoutMilliseconds: Self.timeoutMilliseconds) else { return }
    var failed = 0
    while !Task.isCancelled {
      do {
        try await admin.ping()
        if failed >= Self.failures { logger.info("Kafka answers again") }
        failed = 0
        health.set("brokers", ready: true)
      } catch {
        failed += 1
        if failed == Self.failures {
          logger.warning("Kafka does not answer; what comes waits, devices stay connected", ["error": "\(error)"])
          health.set("brokers", ready: false, "\(error)")
        }
      }
      try? await Task.sleep(for: Self.pause)
    }
    await admin.close()
  }
}
