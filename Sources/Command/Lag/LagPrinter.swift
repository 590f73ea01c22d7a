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
    lines += table(
      ["TOPIC", "RECORDS", "BEHIND", "IN/S", "OUT/S", "CAUGHT UP", showsPartitions ? "OWNER" : "WORST"],
      report.topics.flatMap { showsPartitions ? partitions($0) : [summary($0)] })
    lines.append("")
    lines += table(
      ["TOPIC", "RECORDS", "NEWEST", "IN/S", "READ BY"], report.logs.flatMap { showsPartitions ? partitions($0) : [summary($0)] })
    let remarks = report.problems.map { "WRONG  " + LagWords.problem($0) } + report.gaps.map { "NOTE   " + LagWords.gap($0) }
    if !remarks.isEmpty { lines.append("") }
    return lines
      + remarks.map {
        TerminalText.row($0.split(separator: " ", omittingEmptySubsequences: false).map(String.init), separator: " ", width: width)
      }
  }

  private var heading: String {
    var words = [Timestamp.text(report.time), "group \(TerminalText.visible(report.group))"]
    if let members = report.members {
      words.append(members.state == "Dead" ? "does not exist" : "\(members.state), \(count(members.members.count, "member"))")
    }
    if let lanes = report.lanes { words.append(count(lanes.count, "fan-out lane")) }
    return TerminalText.row(words, width: width)
  }

  private func count(_ number: Int, _ what: String) -> String { "\(number) \(what)\(number == 1 ? "" : "s")" }

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
      name, String(records), records == 0 ? "0" : LagWords.duration(behind), LagWords.rate(rates?.in), LagWords.rate(rates?.out),
      LagWords.catchUp(catchUp), last,
    ]
  }

  // MARK: The other topics

  private func summary(_ topic: TopicLog) -> [String] {
    let read = topic.partitions.compactMap(\.readers)
    let readers = read.isEmpty ? "" : "lanes on \(read.count { !$0.isEmpty }) of \(topic.partitions.count) partitions"
    return [
      "\(topic.topic) (\(topic.partitions.count))", String(topic.records), age(topic.newest), LagWords.rate(topic.rate), readers,
    ]
  }

  private func partitions(_ topic: TopicLog) -> [[String]] {
    topic.partitions.map { each in
      let readers = each.readers.map { $0.isEmpty ? "no lane" : $0.map(TerminalText.visible).joined(separator: ", ") }
      return [
        "\(each.log.partition)", String(each.log.offsets.count), age(each.log.newest), LagWords.rate(each.rate), readers ?? "",
      ]
    }
  }

  private func age(_ newest: Int64?) -> String { newest.map { LagWords.duration(max(0, report.time - $0)) + " ago" } ?? "-" }

  // MARK: Columns

  /// Columns as wide as their longest entry: the first to the left, numbers to the right, the last one as it is.
  private func table(_ heading: [String], _ rows: [[String]]) -> [String] {
    let all = [heading] + rows
    let widths = heading.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      let columns = row.indices.map { column in
        if column == 0 { return TerminalText.padded(row[column], widths[column]) }
        return column == row.count - 1 ? row[column] : TerminalText.aligned(row[column], widths[column])
      }
      let line = TerminalText.row(columns, width: width)
      return String(line.reversed().drop { $0 == " " }.reversed())
    }
  }
}
