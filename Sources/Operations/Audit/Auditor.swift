import Kafka
import Worker

/// The settings of an audit.
package struct AuditSettings: Sendable {
  /// The range of publication times. It begins with the oldest request and ends now by default.
  package var published = TimeRange()
  /// The age up to which a request may still be in flight, in milliseconds.
  package var grace: Int64 = 30_000
  /// The maximum delay of an acknowledgement, and of a session that finds missed deliveries, in milliseconds.
  ///
  /// It is the time of a takeover.
  package var takeover: Int64 = 180_000
  /// Whether a request in its device's mailbox is a violation.
  package var forbidsPending = false
  /// The maximum number of violations with a timeline.
  package var limit = 20
  /// The folder for facts that do not fit into memory.
  package var spillFolder = "/tmp"

  /// Creates the defaults of the command line.
  package init() {}
}

/// The result of an audit.
package struct AuditReport: Sendable {
  /// Counts and violations.
  package var findings: AuditFindings
  /// The timeline of each violation.
  package var timelines: [Explanation]
  /// The number of bytes that were spilled to disk.
  package var spilled: Int
  /// The records of requests, journal and events that the embedded broker has dropped.
  ///
  /// It is 0 on any other cluster.
  package var forgotten: Int64
}

/// Audits a cluster: reads requests and all statements about them, and checks them.
///
/// Facts have a fixed size. They are distributed by apns-id, and again by device, to parts that each fit into memory. So memory does not
/// grow with the range, unless one request or device has too many facts.
extension ClusterTool {
  /// Reads the topics and checks the facts. Then reads the records of the violations again.
  package func audit(_ settings: AuditSettings) async throws -> AuditReport {
    try await Admin.with(kafka) { admin in
      let reader = reader
      let rules = try await completeRules()
      let run = try await AuditRun(rules, settings, admin)
      try await run.read(reader)
      try run.check(onProgress)
      reader.onProgress = nil
      var timelines: [Explanation] = []
      for violation in run.findings.violations { timelines.append(try await run.timeline(of: violation, reader, admin)) }
      return AuditReport(
        findings: run.findings, timelines: timelines, spilled: run.spilled, forgotten: try await admin.forgottenRecords(rules.topics))
    }
  }
}
