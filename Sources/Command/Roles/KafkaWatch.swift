import Kafka
import Worker

/// Checks whether Kafka answers and accepts what the process writes, for the readiness.
///
/// The lanes' clients cannot tell: librdkafka reports neither a hanging broker nor one that has recovered. An idle process writes nothing
/// that could fail. So a client of its own asks regularly.
struct KafkaWatch: Sendable {
  let kafka: KafkaConfiguration
  /// The topics that the process writes to.
  let topics: [String]
  let logger: Logger
  let health: Health

  private static let pause = Duration.seconds(2)
  private static let timeoutMilliseconds: Int32 = 3_000
  /// One failure may come from a single hanging broker, or from a leader that moves and is available a moment later.
  private static let failures = 2
  /// After this many questions it also checks whether the topics can be written, and after each question while they cannot.
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
          logger.warning("Kafka does not answer; records wait, devices stay connected", ["error": "\(error)"])
          health.set("brokers", ready: false, "\(error)")
        }
      }
      try? await Task.sleep(for: Self.pause)
    }
    await admin.close()
  }

  private func tell(_ fault: String?, _ writes: inout Repeated) async {
    guard let fault else {
      if writes.succeeded() { logger.info("Kafka accepts writes again") }
      return health.set("kafka-writes", ready: true)
    }
    let isNew = writes.failed()
    guard writes.count >= Self.failures else { return }
    if isNew { logger.warning("Kafka does not accept writes; records wait", ["reason": fault]) }
    health.set("kafka-writes", ready: false, fault)
  }

  /// Counts consecutive failures.
  private struct Repeated {
    private(set) var count = 0

    /// Counts a failure; whether the state becomes failed.
    mutating func failed() -> Bool {
      count += 1
      return count == failures
    }

    /// Ends the failures; whether the state was failed.
    mutating func succeeded() -> Bool {
      defer { count = 0 }
      return count >= failures
    }
  }
}

/// Finds out whether some topics can be written.
private struct WriteCheck {
  private let topics: [String]
  /// Nil until the brokers have reported them.
  private var limits: WriteLimits?
  /// The number of checks, and whether the last one found no fault.
  private var (looks, isSound) = (0, false)
  /// Operators change limits. They are read again after this many checks, and at each check during a fault.
  private static let looksBetween = 32
  /// Whether a broker refuses the question that shows whether it answers.
  private var mayAskBrokers = true

  init(_ topics: [String]) { self.topics = topics }

  /// Why a topic cannot be written; nil if all can, or if that cannot be found out.
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

  /// The brokers with copies of the topics that do not answer. Without the controllers the cluster still lists them.
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
