public import EventLoop
public import Kafka
public import Notifications
public import Worker

/// Redrives and discards dead letters: an actor on a loop.
///
/// It takes letters in rounds of bounded size, so memory does not grow with them. At the end of each round Kafka has all its records and
/// states. After an interruption the same order continues. Only one order runs at a time: the next one waits, and skips letters that were
/// handled meanwhile.
public actor DeadLetterRedriver {
  /// The actor's loop.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let run: RedriveRun
  private let onProgress: @Sendable (ReadingProgress) -> Void

  /// Makes a redriver of a cluster.
  ///
  /// - Parameters:
  ///   - onProgress: called once a second while a topic is read.
  ///   - onResult: called for each matching letter when it is done. Letters that were handled before are skipped.
  ///   - onWaiting: called while this run waits for another one.
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

  /// Stops after the work in progress.
  public func stop() { run.stop() }

  /// Executes the order. Call it once.
  public func carryOut() async throws -> RedriveReport {
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    try await Admin.with(kafka) { try await run.carryOut(on: loop, kafka, reader, $0) }
    return run.report
  }
}
