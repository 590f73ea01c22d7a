import Kafka
import Notifications
import Operations

/// A report as a table for a person.
struct LagPrinter {
  let report: LagReport
  let width: Int?

  /// A line of a table.
  private struct Row {
    let cells: [String]
    /// The age of the oldest unfinished record, the maximum if unknown, and the number of records; nil without an owner.
    var lag: (behind: Int64, records: Int64)?
  }

  /// Renders the report.
  ///
  /// - Parameter height: the lines that fit. Then the partitions that are furthest behind come first, and the others are only counted. Nil
  ///   for all, in their order.
  func lines(showsPartitions: Bool, height: Int? = nil) -> [String] {
    let heading = heading
    var groups = report.topics.flatMap { showsPartitions ? partitions($0) : [summary($0)] }
    var logs = report.logs.flatMap { showsPartitions ? partitions($0) : [summary($0)] }
    var remarks = TerminalText.remarks(wrong: report.problems.map(LagWords.problem), notes: report.gaps.map(LagWords.gap), width: width)
    if height != nil, showsPartitions { (groups, logs) = (Self.worstFirst(groups), Self.worstFirst(logs)) }
    var groupLines = TerminalTable(
      heading: ["TOPIC", "RECORDS", "BEHIND", "IN/S", "OUT/S", "CAUGHT UP", showsPartitions ? "OWNER" : "WORST"]
    ).lines(groups.map(\.cells), width: width)
    var logLines = TerminalTable(heading: ["TOPIC", "RECORDS", "NEWEST", "IN/S", "UNREAD", "BEHIND", "READ BY"])
      .lines(logs.map(\.cells), width: width)
    if let height, showsPartitions {
      // Headings, empty lines and problems always appear. Partitions get the lines that are left.
      let fixed = Self.height(of: [heading, "", groupLines[0], "", logLines[0]])
      remarks = Self.cut(remarks, to: max(height - fixed - 2 * Self.leastRows, 0)) { "… and \(TerminalText.count($0, "further remark"))" }
      let room = max(height - fixed - Self.height(of: remarks), 2 * Self.leastRows)
      let logRoom = max(room / 2, room - Self.height(of: groupLines.dropFirst()))
      let groupRoom = max(room - logRoom, room - Self.height(of: logLines.dropFirst()))
      groupLines = fitted(groupLines, groups, to: groupRoom)
      logLines = fitted(logLines, logs, to: logRoom)
    }
    return [heading, ""] + groupLines + [""] + logLines + remarks
  }

  private var heading: String {
    var words = [Timestamp.text(report.time), "group \(TerminalText.visible(report.group))"]
    if let members = report.members {
      words.append(LagWords.state(members))
    }
    if let lanes = report.lanes { words.append(TerminalText.count(lanes.count, "fan-out lane")) }
    return TerminalText.row(words, width: width)
  }

  // MARK: The room there is

  /// Lines that each table has at least.
  private static let leastRows = 2

  private static func worstFirst(_ rows: [Row]) -> [Row] {
    let ranked = rows.enumerated().sorted { one, other in
      let (a, b) = (one.element.lag ?? (0, 0), other.element.lag ?? (0, 0))
      return a == b ? one.offset < other.offset : a > b
    }
    return ranked.map(\.element)
  }

  /// A table with as many of its rows as there is room for.
  private func fitted(_ table: [String], _ rows: [Row], to room: Int) -> [String] {
    [table[0]]
      + Self.cut(Array(table.dropFirst()), to: room) { count in
        let words =
          switch rows.suffix(count).compactMap({ $0.lag?.behind }).max() {
          case nil, .max: ""
          case 0: ", none behind"
          case let behind?: ", none behind by more than \(TerminalText.duration(behind))"
          }
        return TerminalText.sentence("and \(TerminalText.count(count, "more partition"))\(words)", width: width)
      }
  }

  /// As many lines as there is room for; where they are too many, the last one says how many are left out.
  private static func cut(_ lines: [String], to room: Int, _ further: (Int) -> String) -> [String] {
    guard height(of: lines) > room else { return lines }
    var shown = lines
    while !shown.isEmpty, height(of: shown) > room - 1 { shown.removeLast() }
    return shown + [further(lines.count - shown.count)]
  }

  private static func height(of lines: some Sequence<String>) -> Int {
    lines.reduce(0) { $0 + 1 + $1.count { $0 == "\n" } }
  }

  // MARK: Topics of the group

  private func summary(_ topic: TopicLag) -> Row {
    let worst = topic.worst.map { state in
      ["partition \(state.lag.partition.partition)", owner(state.owner)].filter { !$0.isEmpty }.joined(separator: ", ")
    }
    return row(
      "\(topic.topic) (\(topic.partitions.count))", topic.records, topic.behind, topic.rates, topic.catchUp, worst ?? "")
  }

  private func owner(_ owner: PartitionOwner) -> String { owner == .unknown ? "" : LagWords.owner(owner) }

  private func partitions(_ topic: TopicLag) -> [Row] {
    topic.partitions.map { state in
      row("\(state.lag.partition)", state.records, state.behind, state.rates, state.catchUp, LagWords.owner(state.owner))
    }
  }

  private func row(_ name: String, _ records: Int64, _ behind: Int64, _ rates: LagRates?, _ catchUp: CatchUp, _ last: String) -> Row {
    Row(
      cells: [
        name, String(records), records == 0 ? "0" : TerminalText.duration(behind), LagWords.rate(rates?.in), LagWords.rate(rates?.out),
        LagWords.catchUp(catchUp), last,
      ], lag: (records == 0 ? 0 : behind, records))
  }

  // MARK: The other topics

  private func summary(_ topic: TopicLog) -> Row {
    let read = topic.partitions.compactMap(\.readers)
    var readers =
      read.isEmpty ? "" : "lanes on \(read.count { !$0.isEmpty }) of \(TerminalText.count(topic.partitions.count, "partition"))"
    if let worst = topic.worst, worst.records > 0 { readers += ", worst: partition \(worst.partition)" }
    return Row(
      cells: ["\(topic.topic) (\(topic.partitions.count))", String(topic.records), age(topic.newest), LagWords.rate(topic.rate)]
        + lag(topic.unread, topic.worst, isRead: !read.isEmpty) + [readers])
  }

  private func partitions(_ topic: TopicLog) -> [Row] {
    topic.partitions.map { each in
      let readers = each.readers.map { $0.isEmpty ? "no lane" : $0.map(TerminalText.visible).joined(separator: ", ") }
      return Row(
        cells: ["\(each.log.partition)", String(each.log.offsets.count), age(each.log.newest), LagWords.rate(each.rate)]
          + lag(each.worst?.records, each.worst, isRead: each.readers != nil) + [readers ?? ""],
        lag: each.worst.map { ($0.records == 0 ? 0 : $0.behind ?? .max, $0.records) })
    }
  }

  /// What lanes have not taken, and how old the oldest of it is.
  private func lag(_ records: Int64?, _ worst: FanOutLag?, isRead: Bool) -> [String] {
    guard let records, let worst else { return isRead ? ["-", "-"] : ["", ""] }
    return [String(records), worst.records == 0 ? "0" : worst.behind.map { TerminalText.duration($0) } ?? "-"]
  }

  private func age(_ newest: Int64?) -> String { newest.map { TerminalText.duration(max(0, report.time - $0)) + " ago" } ?? "-" }
}
