public import EventLoop
public import Kafka
public import Notifications

/// Redrives and discards dead letters: an actor on a loop.
///
/// Letters are taken in rounds of bounded size, so memory stays the same however many there are; what is written is in Kafka at the end
/// of each round, with its state. Ended at any moment, the same order goes on where it was. One order is carried out at a time: the next one
/// waits, and passes over what was done meanwhile.
public actor DeadLetterRedriver {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let run: RedriveRun
  private let onProgress: @Sendable (ReadingProgress) -> Void

  /// Makes one for a cluster.
  ///
  /// - Parameters:
  ///   - onProgress: told once a second while a topic is read.
  ///   - onResult: told of each letter that was asked for, when it is done; not of those that were handled before.
  ///   - onWaiting: told of another run that this one waits for, as long as it does.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules, _ order: LetterOrder,
    onProgress: @escaping @Sendable (ReadingProgress) -> Void, onResult: @escaping @Sendable (LetterResult) -> Void,
    onWaiting: @escaping @Sendable (LetterClaim) -> Void = { _ in }
  ) {
    self.loop = loop
    self.kafka = kafka
    self.onProgress = onProgress
    run = RedriveRun(rules, order, onResult, onWaiting: onWaiting)
  }

  /// Ends it after what is under way.
  public func stop() { run.stop() }

  /// Carries the order out, once.
  public func carryOut() async throws -> RedriveReport {
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    try await Admin.with(kafka) { try await run.carryOut(on: loop, kafka, reader, $0) }
    return run.report
  }
}
