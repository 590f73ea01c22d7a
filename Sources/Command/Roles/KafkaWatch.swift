import Kafka
import Worker

/// Whether Kafka answers and takes what the process writes, as the readiness says it.
///
/// The clients of the lanes cannot tell: librdkafka says nothing of a broker that hangs, and nothing of one that is back. An idle process
/// writes nothing that could fail. So a client that does nothing else asks now and then.
struct KafkaWatch: Sendable {
  let kafka: KafkaConfiguration
  /// The topics that the process writes to.
  let topics: [String]
  let logger: Logger
  let health: Health

  private static let pause = Duration.seconds(2)
  private static let timeoutMilliseconds: Int32 = 3_000
  /// One broker of several that hangs may be the one that was asked, and a leader that moves is there a moment later.
  private static let failures = 2
  /// Every so many questions it is also asked whether the topics can be written; each time while they cannot.
  private static let questionsBetween = 4

  /// Asks until it is cancelled.
  func run() async {
    guard let admin = try? Admin(kafka, timeoutMilliseconds: Self.timeoutMilliseconds) else { return }
    var answers = Repeated()
    var writes = Repeated()
    var check = WriteCheck(topics)
    var question = 0
    while !Task.isCancelled {
      do {
        try await admin.ping()
        if answers.succeeded() { logger.info("Kafka answers again") }
        health.set("brokers", ready: true)
        question += 1
        if writes.count > 0 || question % Self.questionsBetween == 1 { await tell(await check.fault(admin), &writes) }
      } catch {
        if answers.failed() {
          logger.warning("Kafka does not answer; what comes waits, devices stay connected", ["error": "\(error)"])
          health.set("brokers", ready: false, "\(error)")
        }
      }
      try? await Task.sleep(for: Self.pause)
    }
    await admin.close()
  }

  private func tell(_ fault: String?, _ writes: inout Repeated) async {
    guard let fault else {
      if writes.succeeded() { logger.info("Kafka takes again what is written") }
      return health.set("kafka-writes", ready: true)
    }
    let isNew = writes.failed()
    guard writes.count >= Self.failures else { return }
    if isNew { logger.warning("Kafka does not take what is written; what comes waits", ["reason": fault]) }
    health.set("kafka-writes", ready: false, fault)
  }

  /// Counts failures in a row.
  private struct Repeated {
    private(set) var count = 0

    /// Whether that makes it failed.
    mutating func failed() -> Bool {
      count += 1
      return count == failures
    }

    /// Whether it had failed before.
    mutating func succeeded() -> Bool {
      defer { count = 0 }
      return count >= failures
    }
  }
}

/// Finds out whether some topics can be written.
private struct WriteCheck {
  private let topics: [String]
  /// Nil until the brokers have told them.
  private var limits: WriteLimits?
  /// How often was looked, and whether nothing was wrong the last time.
  private var (looks, isSound) = (0, false)
  /// Operators change limits: so many looks later they are asked for again, and at each look while something is wrong.
  private static let looksBetween = 32
  /// Whether a broker refuses the question that shows whether it answers.
  private var mayAskBrokers = true

  init(_ topics: [String]) { self.topics = topics }

  /// Why something cannot be written; nil where all can, and where that cannot be found out.
  mutating func fault(_ admin: Admin) async -> String? {
    guard let cluster = try? await admin.describeCluster(), !cluster.isEmbedded else { return nil }
    if !isSound || looks % Self.looksBetween == 0 { limits = (try? await admin.writeLimits(of: topics)) ?? limits }
    looks += 1
    guard let limits else { return nil }
    let silent = await silentBrokers(of: cluster, admin)
    let faults = WriteFault.faults(of: topics, in: cluster, limits, silent: silent)
    isSound = faults.isEmpty
    return faults.isEmpty ? nil : faults.map { "\($0)" }.joined(separator: "; ")
  }

  /// The brokers with copies of the topics that do not answer. Where the controllers are away the cluster goes on counting them.
  private mutating func silentBrokers(of cluster: ClusterDescription, _ admin: Admin) async -> Set<Int32> {
    guard mayAskBrokers else { return [] }
    let brokers = Set(topics.flatMap { cluster.topics[$0]?.partitions ?? [] }.flatMap { $0.inSyncBrokers + [$0.leader] })
    var silent: Set<Int32> = []
    for broker in brokers.sorted() where broker >= 0 {
      switch await admin.answers(broker: broker) {
      case true?: break
      case false?: silent.insert(broker)
      // Each refusal is a line in the broker's log.
      case nil: mayAskBrokers = false
      }
    }
    return silent
  }
}
