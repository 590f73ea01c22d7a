import Notifications
import TestSupport
import Testing

@testable import Store

/// What a worker says of itself, as Redis keeps it.
@Suite struct WorkerReportTests {
  private static var full: WorkerReport {
    var report = WorkerReport(
      name: "fan-out@host:7", roles: ["fan-out"], version: "0.1.0", started: 1_700_000_000_000, written: 1_700_000_005_000)
    report.admin = "http://host:9464"
    report.devices = ["ws://host:7171/v1/device"]
    (report.lanes, report.connections, report.partitions, report.unreadyCount) = (4, 1_203, 12, 1)
    report.unready = [.init(name: "redis", lane: "fan-out-0", reason: "connecting to \"here\"\n", since: 1_700_000_004_000)]
    report.laneLags = [
      .init(lane: "fan-out-1", partition: 7, records: 1_200, milliseconds: 2_300),
      .init(lane: "fan-out-0", partition: 3, records: 4, milliseconds: nil),
    ]
    report.clockAhead = -3_000_000
    report.settings = ["mailbox.bound": "100", "transform.extensions": "none"]
    return report
  }

  @Test func aReportIsReadAsItWasWritten() {
    let plain = WorkerReport(name: "t", roles: [], version: "", started: 0, written: 0)
    #expect(WorkerReport(plain.bytes) == plain && plain.isReady)
    #expect(WorkerReport(Self.full.bytes) == Self.full && !Self.full.isReady && !Self.full.isDraining)
  }

  @Test func whatALaterVersionAddsIsSkipped() {
    let text = String(decoding: Self.full.bytes, as: UTF8.self)
    let later = #"{"mood":["good",{"why":1}],"# + text.dropFirst()
    #expect(WorkerReport(Array(later.utf8)) == Self.full)
  }

  @Test(arguments: ["\u{0}", "\"", "\\", "a", "é", "𐍈", "\u{7F}\u{1B}[2J"]) func aReportIsNeverLargerThanItsBound(character: String) {
    let long = String(repeating: character, count: 9_000)
    var report = WorkerReport(
      name: Name(long), roles: Array(repeating: long, count: 99), version: long, started: .max, written: .min)
    (report.admin, report.devices) = (long, Array(repeating: long, count: 99))
    (report.lanes, report.connections, report.partitions, report.unreadyCount) = (.max, .max, .max, 5_000)
    report.unready = Array(repeating: .init(name: long, lane: long, reason: long, since: .max), count: 5_000)
    report.laneLags = Array(repeating: .init(lane: long, partition: .max, records: .max, milliseconds: .max), count: 256)
    report.clockAhead = .min
    report.settings = Dictionary(uniqueKeysWithValues: (0..<99).map { ("\($0)\(long)", long) })
    #expect(report.bytes.count <= WorkerReport.maximumByteCount)
    let read = WorkerReport(report.bytes)
    #expect(read?.unreadyCount == 5_000 && read?.unready.count == WorkerReport.maximumConditions)
    #expect(read?.laneLags.count == WorkerReport.maximumLanes)
    #expect(read.map { !$0.name.text.isEmpty && long.utf8.starts(with: $0.name.utf8) } == true)
    #expect(WorkerReport(Array(repeating: UInt8(ascii: " "), count: WorkerReport.maximumByteCount) + Self.full.bytes) == nil)
  }

  @Test func bytesOfSomebodyElseAreNoReportOrABoundedOne() {
    let failures = Fuzz(
      "a worker's report", corpus: [Self.full.bytes],
      tokens: ["\"unready\":-1", "null", "[[[[", "1e999", "\"conditions\":[{}]", "\"lags\":[{}]", "\"worker\""]
    ).run { bytes, _ in
      guard let report = WorkerReport(Array(bytes)) else { return nil }
      if report.name.text.isEmpty { return "it has no name" }
      if report.bytes.count > WorkerReport.maximumByteCount { return "it is too large" }
      if report.laneLags.contains(where: { $0.records < 0 || $0.partition < 0 || $0.milliseconds ?? 0 < 0 }) {
        return "its lags do not fit"
      }
      if report.unreadyCount < report.unready.count || report.lanes < 0 { return "its numbers do not fit" }
      return WorkerReport(report.bytes) == report ? nil : "another report"
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  /// Whoever adds up the lags of all lanes must not trap.
  @Test func lagsThatNoPartitionCanHaveAreBounded() throws {
    var report = Self.full
    report.laneLags = (0..<32 as Range<Int32>).map {
      WorkerReport.Lag(lane: "fan-out-0", partition: $0, records: .max, milliseconds: .max)
    }
    let read = try #require(WorkerReport(report.bytes))
    let (sum, isTooMuch) = read.laneLags.reduce((Int64(0), false)) { before, lag in
      let (sum, overflows) = before.0.addingReportingOverflow(lag.records)
      return (sum, before.1 || overflows)
    }
    #expect(read.laneLags.count == 32 && sum > 0 && !isTooMuch)
  }
}
