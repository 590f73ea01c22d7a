import EventLoop
import Kafka
import Notifications
import Operations
import Store
import Worker

/// A report for a person.
struct StatusPrinter {
  /// What of a report is shown, besides its problems and notes.
  enum View {
    /// All of it, with a line for each topic.
    case all
    /// Only the topics, or only their partitions.
    case topics, partitions
  }

  let report: ClusterReport
  let width: Int?

  /// All lines of the report.
  ///
  /// - Parameter height: the lines that fit, and nil for all. The screen cuts off the rest, so the problems and the partitions that are
  ///   furthest behind come first.
  func lines(_ view: View, height: Int? = nil) -> [String] {
    let remarks = TerminalText.remarks(
      wrong: report.problems.map { TerminalText.visible($0.sentence) }, notes: report.notes.map { TerminalText.visible($0.sentence) },
      width: width)
    var blocks = [topics(view, worstFirst: height != nil)]
    if view == .all {
      blocks.insert(table, at: 0)
      let facts = (kafka + redis + schedules + population).map { TerminalText.padded($0.name, Self.nameWidth) + "  " + $0.text }
      blocks.append(facts.map { TerminalText.sentence($0, width: width) })
    }
    let shown = blocks.filter { !$0.isEmpty }.flatMap { [""] + $0 }
    return [heading] + (height == nil ? shown + remarks : remarks + shown)
  }

  private static let nameWidth = "mailboxes".count

  private var heading: String {
    var words = [Timestamp.text(report.sample.time), "topics \(report.cluster.topics.prefix)…"]
    let group = "group \(TerminalText.visible(report.cluster.group))"
    if let found = report.members {
      let state = found.state == "Dead" ? "does not exist" : "\(found.state), \(TerminalText.count(found.members.count, "member"))"
      words.append("\(group): \(state)")
    } else {
      words.append(group)
    }
    if let lanes = report.lanes { words.append(TerminalText.count(lanes.count, "fan-out lane")) }
    return TerminalText.row(words, width: width)
  }

  // MARK: Workers

  private var table: [String] {
    guard !report.workers.isEmpty else { return [] }
    return TerminalTable(
      heading: ["WORKER", "ROLE", "STATE", "LANES", "PARTITIONS", "CONNECTIONS", "UP", "VERSION", "WHERE"], words: [1, 2]
    ).lines(report.workers.map(row), width: width)
  }

  private func row(_ worker: Workers.Listing) -> [String] {
    let said = worker.report
    let deliveries = report.laneLags.filter { $0.worker == worker.name }.map(\.partition).sorted()
    let partitions = [said?.partitions.map { "\($0)" }, deliveries.isEmpty ? nil : "deliveries \(PartitionNames.text(deliveries))"]
      .compactMap { $0 }.joined(separator: ", ")
    let places = [said?.admin].compactMap { $0 } + (said?.devices ?? [])
    return [
      worker.name.text, worker.roles.joined(separator: ", "), state(worker), said.map { "\($0.lanes)" } ?? "-",
      partitions.isEmpty ? "-" : partitions, said?.connections.map { "\($0)" } ?? "-",
      worker.age.map { TerminalText.duration($0) } ?? "-", said?.version ?? "-", places.joined(separator: ", "),
    ].map(TerminalText.visible)
  }

  private func state(_ worker: Workers.Listing) -> String {
    switch worker.standing {
    case .ready: "ready"
    case .unready: "NOT READY"
    case .draining: "draining"
    case .silent: "SILENT for \(TerminalText.duration(worker.silentMilliseconds))"
    case .unreadable: "unreadable"
    }
  }

  // MARK: Topics

  private func topics(_ view: View, worstFirst: Bool) -> [String] {
    guard !report.topics.isEmpty else { return [] }
    let heading = ["TOPIC", "LOG", "NEWEST", "IN/S", "OUT/S", "RECORDS", "BEHIND", "CAUGHT UP", view == .partitions ? "READ BY" : "WORST"]
    let rows: [[String]]
    if view == .partitions {
      let partitions = report.topics.flatMap(\.partitions)
      let sorted = worstFirst ? partitions.sorted { $0.state.rank > $1.state.rank } : partitions
      rows = sorted.map { cells("\($0.lag.partition)", $0.state, readers($0)) }
    } else {
      rows = report.topics.map { topic in
        let worst = topic.worst.map { "partition \($0.lag.partition.partition)\($0.readers == nil ? "" : ", " + readers($0))" }
        return cells("\(topic.topic) (\(topic.partitions.count))", topic.state, worst ?? "")
      }
    }
    return TerminalTable(heading: heading).lines(rows, width: width)
  }

  private func readers(_ partition: PartitionState) -> String {
    partition.readers.map { $0.isEmpty ? "NOBODY" : TerminalText.visible($0.joined(separator: ", ")) } ?? ""
  }

  private func cells(_ name: String, _ state: ReadState, _ last: String) -> [String] {
    [
      name, "\(state.logged)", state.newest.map { TerminalText.duration(max(0, report.sample.time - $0)) + " ago" } ?? "",
      rate(state.in), rate(state.out), state.records.map { "\($0)" } ?? "",
      state.records == 0 ? "0" : state.behind.map { TerminalText.duration($0) } ?? "", state.catchUp?.facts.words ?? "", last,
    ]
  }

  /// A rate with one decimal where it is small.
  private func rate(_ rate: Double?) -> String {
    guard let rate else { return "" }
    if rate >= 100 || rate == 0 { return String(Int64(saturating: rate.rounded())) }
    let tenths = Int64(saturating: (rate * 10).rounded())
    return tenths == 0 ? "<0.1" : "\(tenths / 10).\(tenths % 10)"
  }

  // MARK: Kafka and Redis

  private var kafka: [(name: String, text: String)] {
    guard let kafka = report.sample.kafka.value else { return [("Kafka", "away")] }
    let brokers = kafka.cluster.brokers.sorted { $0.key < $1.key }.map(\.value)
    let text = "\(kafka.cluster.id ?? "without an id"), \(TerminalText.count(brokers.count, "broker")): \(shortened(brokers))"
    return [("Kafka", TerminalText.visible(text))]
  }

  private func shortened(_ names: [String]) -> String {
    names.prefix(8).joined(separator: ", ") + (names.count > 8 ? " and \(names.count - 8) more" : "")
  }

  private var redis: [(name: String, text: String)] {
    guard let known = report.sample.redis else { return [] }
    guard let redis = known.value else { return [("Redis", "away")] }
    let server = redis.server
    let memory = server.usedMemory.map { used in
      let maximum = server.maximumMemory ?? 0
      let share = " of \(ReadableText.size(maximum)) (\(TerminalText.share(used, of: maximum)))"
      return ReadableText.size(used) + (maximum > 0 ? share : ", no maxmemory")
    }
    let layouts = (redis.identity.value ?? nil)?.layouts
    let words = [
      server.address, server.version.map { "version \($0)" }, server.isPrimary.map { $0 ? "primary" : "replica" },
      server.replicas.map { TerminalText.count($0, "replica") }, memory, server.policy, server.evictedKeys.map { "\($0) evicted" },
      server.appendsWrites.map { $0 ? "AOF \(server.synchronization ?? "")" : "no AOF" },
      layouts.map { $0.count == 1 ? "layout \($0.upperBound)" : "layouts \($0.lowerBound) to \($0.upperBound)" },
    ]
    return [("Redis", words.compactMap { $0.map(TerminalText.visible) }.joined(separator: ", "))]
  }

  private var schedules: [(name: String, text: String)] {
    guard let found = report.sample.redis?.value?.schedules?.value, found.pending > 0 else { return [] }
    var whose = found.holders.map { "\(TerminalText.visible($0.application)) \($0.pending)" }
    if found.withoutDevices > 0 { whose.append("\(found.withoutDevices) for targets without a device") }
    let fullest = found.fullest.map { "; partition \($0.partition) has \($0.pending) of them in bucket \($0.bucket), where most are" } ?? ""
    return [("schedules", "\(TerminalText.count(found.pending, "request")) pending: \(shortened(whose))\(fullest)")]
  }

  private var population: [(name: String, text: String)] {
    guard let found = report.sample.redis?.value?.population?.value else { return [] }
    let about = found.isExact ? "" : "about "
    let (entries, mailboxes) = (TerminalText.count(found.entries, "notification"), TerminalText.count(found.mailboxes, "mailbox"))
    return [
      ("devices", "\(about)\(found.devices) registered, \(about)\(found.connected) connected"),
      ("mailboxes", "\(about)\(entries) in \(about)\(mailboxes)"),
    ]
  }
}

extension CatchUp {
  /// Its name and its milliseconds for programs, and its words.
  var facts: (name: String, milliseconds: Int64?, words: String) {
    switch self {
    case .atEnd: ("at-end", 0, "at the end")
    case .keepsUp: ("keeps-up", 0, "keeps up")
    case .after(let milliseconds): ("catches-up", milliseconds, "in " + TerminalText.duration(milliseconds))
    case .never: ("falls-behind", nil, "never")
    case .unknown: ("unknown", nil, "-")
    }
  }
}
