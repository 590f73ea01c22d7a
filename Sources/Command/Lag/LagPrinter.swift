import Kafka
import Notifications
import Operations

/// A report as a table for a person.
struct LagPrinter {
  private let report: LagReport
  private let width: Int?

  init(_ report: LagReport, width: Int?) { (self.report, self.width) = (report, width) }

  /// The whole of it.
  func lines(showsPartitions: Bool) -> [String] {
    var lines = [heading, ""]
    lines += TerminalTable(
      heading: ["TOPIC", "RECORDS", "BEHIND", "IN/S", "OUT/S", "CAUGHT UP", showsPartitions ? "OWNER" : "WORST"]
    ).lines(report.topics.flatMap { showsPartitions ? partitions($0) : [summary($0)] }, width: width)
    lines.append("")
    lines += TerminalTable(heading: ["TOPIC", "RECORDS", "NEWEST", "IN/S", "UNREAD", "BEHIND", "READ BY"])
      .lines(report.logs.flatMap { showsPartitions ? partitions($0) : [summary($0)] }, width: width)
    return lines
      + TerminalText.remarks(wrong: report.problems.map(LagWords.problem), notes: report.gaps.map(LagWords.gap), width: width)
  }

  private var heading: String {
    var words = [Timestamp.text(report.time), "group \(TerminalText.visible(report.group))"]
    if let members = report.members {
      words.append(LagWords.state(members))
    }
    if let lanes = report.lanes { words.append(TerminalText.count(lanes.count, "fan-out lane")) }
    return TerminalText.row(words, width: width)
  }

  // MARK: Topics of the group

  private func summary(_ topic: TopicLag) -> [String] {
    let worst = topic.worst.map { state in
      ["partition \(state.lag.partition.partition)", owner(state.owner)].filter { !$0.isEmpty }.joined(separator: ", ")
    }
    return row(
      "\(topic.topic) (\(topic.partitions.count))", topic.records, topic.behind, topic.rates, topic.catchUp, worst ?? "")
  }

  private func owner(_ owner: PartitionOwner) -> String { owner == .unknown ? "" : LagWords.owner(owner) }

  private func partitions(_ topic: TopicLag) -> [[String]] {
    topic.partitions.map { state in
      row("\(state.lag.partition)", state.records, state.behind, state.rates, state.catchUp, LagWords.owner(state.owner))
    }
  }

  private func row(
    _ name: String, _ records: Int64, _ behind: Int64, _ rates: LagRates?, _ catchUp: CatchUp, _ last: String
  ) -> [String] {
    [
      name, String(records), records == 0 ? "0" : TerminalText.duration(behind), LagWords.rate(rates?.in), LagWords.rate(rates?.out),
      LagWords.catchUp(catchUp), last,
    ]
  }

  // MARK: The other topics

  private func summary(_ topic: TopicLog) -> [String] {
    let read = topic.partitions.compactMap(\.readers)
    var readers = read.isEmpty ? "" : "lanes on \(read.count { !$0.isEmpty }) of \(topic.partitions.count) partitions"
    if let worst = topic.worst, worst.records > 0 { readers += ", worst: partition \(worst.partition)" }
    return [
      "\(topic.topic) (\(topic.partitions.count))", String(topic.records), age(topic.newest), LagWords.rate(topic.rate),
    ] + lag(topic.unread, topic.worst, isRead: !read.isEmpty) + [readers]
  }

  private func partitions(_ topic: TopicLog) -> [[String]] {
    topic.partitions.map { each in
      let readers = each.readers.map { $0.isEmpty ? "no lane" : $0.map(TerminalText.visible).joined(separator: ", ") }
      return [
        "\(each.log.partition)", String(each.log.offsets.count), age(each.log.newest), LagWords.rate(each.rate),
      ] + lag(each.worst?.records, each.worst, isRead: each.readers != nil) + [readers ?? ""]
    }
  }

  /// What lanes have not taken, and how old the oldest of it is.
  private func lag(_ records: Int64?, _ worst: LaneLag?, isRead: Bool) -> [String] {
    guard let records, let worst else { return isRead ? ["-", "-"] : ["", ""] }
    return [String(records), worst.records == 0 ? "0" : worst.behind.map { TerminalText.duration($0) } ?? "-"]
  }

  private func age(_ newest: Int64?) -> String { newest.map { TerminalText.duration(max(0, report.time - $0)) + " ago" } ?? "-" }
}
