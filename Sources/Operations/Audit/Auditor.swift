public import EventLoop
public import Kafka

/// What an audit is asked.
public struct AuditSettings: Sendable {
  /// When the requests were published; without a first moment all that are there, without a last one up to now.
  public var published = TimeRange()
  /// See ``AuditRules/grace``.
  public var grace: Int64 = 30_000
  /// See ``AuditRules/clockSlack``.
  public var clockSlack: Int64 = 5_000
  /// See ``AuditRules/takeover``.
  public var takeover: Int64 = 180_000
  /// See ``AuditRules/forbidsPending``.
  public var forbidsPending = false
  /// Violations that are told in full.
  public var limit = 20
  /// Where facts are put that do not fit into memory.
  public var spillFolder = "/tmp"

  /// The defaults of the command line.
  public init() {}
}

/// What came out of an audit.
public struct AuditReport: Sendable {
  /// Counts and violations.
  public var findings: AuditFindings
  /// For each violation what its records say, in their order.
  public var timelines: [Explanation]
  /// Bytes that were put aside on disk.
  public var spilled: Int64
  /// Records of requests, the journal and events that the embedded broker has dropped; 0 on any other cluster.
  public var forgotten: Int64
}

/// Reads a range of requests and all that was told of them, and judges them: an actor on a loop.
///
/// Facts of a fixed size are spread by apns-id, and again by device, over parts that fit into memory each; so memory does not grow with
/// the range, but for a single person or device of which more is told than fits.
public actor Auditor {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let rules: RequestRules
  private let settings: AuditSettings
  private let onProgress: @Sendable (ReadingProgress) -> Void

  /// Makes one for a cluster.
  ///
  /// - Parameter onProgress: told once a second while topics are read, and between the parts that are judged.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules, _ settings: AuditSettings,
    onProgress: @escaping @Sendable (ReadingProgress) -> Void
  ) {
    self.loop = loop
    self.kafka = kafka
    self.rules = rules
    self.settings = settings
    self.onProgress = onProgress
  }

  /// Reads, judges, and reads again what is to be told of the violations.
  public func audit() async throws -> AuditReport {
    try await Admin.with(kafka) { try await audit($0) }
  }

  private func audit(_ admin: Admin) async throws -> AuditReport {
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    let rules = try await ClusterCheck(on: loop, kafka, rules.topics).completing(rules)
    let run = try await AuditRun(rules, settings, admin)
    try await run.read(reader)
    try run.judge(onProgress)
    reader.onProgress = nil
    var timelines: [Explanation] = []
    for violation in run.findings.violations { timelines.append(try await run.timeline(of: violation, reader, admin)) }
    return AuditReport(
      findings: run.findings, timelines: timelines, spilled: run.spilled, forgotten: try await admin.forgottenRecords(rules.topics))
  }
}
