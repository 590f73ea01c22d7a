public import EventLoop
public import Kafka

/// The question of an audit.
public struct AuditSettings: Sendable {
  /// The time of publication. Without a first moment it begins with the oldest request; without a last one it ends now.
  public var published = TimeRange()
  /// See ``AuditRules/grace``.
  public var grace: Int64 = 30_000
  /// See ``AuditRules/clockSlack``.
  public var clockSlack: Int64 = 5_000
  /// See ``AuditRules/takeover``.
  public var takeover: Int64 = 180_000
  /// See ``AuditRules/forbidsPending``.
  public var forbidsPending = false
  /// The most violations with a timeline.
  public var limit = 20
  /// The folder for facts that do not fit into memory.
  public var spillFolder = "/tmp"

  /// The defaults of the command line.
  public init() {}
}

/// The result of an audit.
public struct AuditReport: Sendable {
  /// Counts and violations.
  public var findings: AuditFindings
  /// The timeline of each violation.
  public var timelines: [Explanation]
  /// Bytes that were spilled to disk.
  public var spilled: Int64
  /// Records of requests, the journal and events that the embedded broker has dropped; 0 on any other cluster.
  public var forgotten: Int64
}

/// Reads requests and all statements on them, and judges them: an actor on a loop.
///
/// Facts have a fixed size. They are spread by apns-id, and again by device, over parts that each fit into memory. So memory does not grow
/// with the range, unless one person or device has too many facts.
public actor Auditor {
  /// The actor's loop.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let rules: RequestRules
  private let settings: AuditSettings
  private let onProgress: @Sendable (ReadingProgress) -> Void

  /// Makes an auditor of a cluster.
  ///
  /// - Parameter onProgress: called once a second while topics are read, and between judged parts.
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

  /// Reads and judges, then reads the records of the violations again.
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
