import Kafka
import Notifications
import Testing
import Worker

@testable import Command
@testable import Operations

/// Reports of many partitions on a terminal that has room for few lines.
@Suite struct LagPrinterTests {
  private static let topics = Topics(prefix: "t.")

  /// A report in which the higher partitions of the requests are further behind, and the first of deliveries.
  private static func report(partitions: Int32, isLate: Bool = true, problems: Int32 = 0) -> LagReport {
    let states = (0..<partitions).map { number in
      PartitionState(
        lag: PartitionLag(
          partition: TopicPartition(topics.requests, number), log: 0..<10, committed: isLate ? 5 : 10, oldest: isLate ? 1_000 : nil),
        behind: isLate ? Int64(number) * 1_000 : 0, catchUp: .unknown, owner: .unknown)
    }
    let logs = (0..<partitions).map { number in
      var log = TopicLog.Partition(log: PartitionLog(partition: TopicPartition(topics.deliveries, number), offsets: 0..<10))
      log.lags = [FanOutLag(worker: "w", lane: "l", partition: number, records: number == 0 ? 3 : 0, behind: number == 0 ? 2_500 : 0)]
      return log
    }
    return LagReport(
      time: 1_000_000, group: "g", members: nil, topics: [TopicLag(topic: topics.requests, partitions: states)],
      logs: [TopicLog(topic: topics.deliveries, partitions: logs)], lanes: nil,
      problems: (0..<problems).map { .missed(TopicPartition(topics.requests, $0), 0..<9) }, gaps: [])
  }

  private static func lines(_ report: LagReport, height: Int?, width: Int? = 80) -> [String] {
    LagPrinter(report: report, width: width).lines(showsPartitions: true, height: height).flatMap {
      $0.split(separator: "\n", omittingEmptySubsequences: false)
    }
    .map(String.init)
  }

  @Test func `the partitions that are the furthest behind come first, and the others are counted`() {
    let lines = Self.lines(Self.report(partitions: 100), height: 23)
    #expect(lines.count == 23)
    let requests = lines.filter { $0.hasPrefix("t.requests/") }.compactMap { $0.split(separator: " ").first.map(String.init) }
    #expect(requests.prefix(2) == ["t.requests/99", "t.requests/98"] && requests.count == 8, "\(lines.joined(separator: "\n"))")
    #expect(lines.contains("and 92 more partitions, none behind by more than 1 min 31 s"), "\(lines.joined(separator: "\n"))")
    #expect(lines.first { $0.hasPrefix("t.deliveries/") }?.hasPrefix("t.deliveries/0 ") == true)
    #expect(lines.last == "and 92 more partitions, none behind", "\(lines.joined(separator: "\n"))")
  }

  @Test(arguments: [(10, 40), (15, 80), (24, 60), (24, 200), (60, 80)])
  func `a report has no more lines than the screen, however many partitions and remarks there are`(height: Int, width: Int) {
    for (partitions, problems) in [(1, 0), (3, 1), (200, 0), (200, 50)] as [(Int32, Int32)] {
      let lines = Self.lines(Self.report(partitions: partitions, problems: problems), height: height, width: width)
      // Headings alone may take more on a small screen: then ReportScreen cuts off the rest.
      #expect(lines.count <= max(height, 16), "\(partitions) partitions, \(problems) problems")
    }
  }

  @Test func `without a screen all partitions come in their order`() {
    let lines = Self.lines(Self.report(partitions: 100), height: nil)
    #expect(lines.filter { $0.hasPrefix("t.requests/") }.count == 100)
    #expect(lines.first { $0.hasPrefix("t.requests/") }?.hasPrefix("t.requests/0 ") == true)
    #expect(!lines.contains { $0.contains("more partition") })
  }

  @Test func `what fits is not cut`() {
    let lines = Self.lines(Self.report(partitions: 3, isLate: false, problems: 1), height: 30)
    #expect(lines.filter { $0.contains("/") && $0.hasPrefix("t.") }.count == 6 && !lines.contains { $0.contains("more partition") })
    #expect(lines.contains { $0.hasPrefix("WRONG  t.requests/0: 9 records are gone") })
  }
}
