import Kafka
import Notifications
import Operations
import Store
import Worker

/// A report for a person.
struct StatusPrinter {
  let report: StatusReport
  let width: Int?

  /// All lines of the report.
  var lines: [String] {
    var lines = [TerminalText.row([Timestamp.text(report.sample.time), "topics \(report.topics.prefix)…"], width: width), ""]
    if !report.workers.isEmpty {
      lines += TerminalTable(
        heading: ["WORKER", "ROLE", "STATE", "LANES", "PARTITIONS", "CONNECTIONS", "UP", "VERSION", "WHERE"], words: [1, 2]
      ).lines(report.workers.map(row), width: width)
      lines.append("")
    }
    let facts = kafka + redis + schedules + population
    lines += facts.map { TerminalText.sentence(TerminalText.padded($0.name, Self.nameWidth) + "  " + $0.text, width: width) }
    return lines
      + TerminalText.remarks(wrong: report.problems.map(StatusWords.problem), notes: report.notes.map(StatusWords.note), width: width)
  }

  private static let nameWidth = "mailboxes".count

  // MARK: Workers

  private func row(_ worker: Workers.Listing) -> [String] {
    let said = worker.report
    let deliveries = report.partitions(of: worker)
    let partitions = [said?.partitions.map { "\($0)" }, deliveries.isEmpty ? nil : "deliveries \(PartitionNames.text(deliveries))"]
      .compactMap { $0 }.joined(separator: ", ")
    let places = [said?.admin].compactMap { $0 } + (said?.devices ?? [])
    return [
      TerminalText.visible(worker.name), TerminalText.visible(worker.roles.joined(separator: ", ")), state(worker),
      said.map { "\($0.lanes)" } ?? "-", partitions.isEmpty ? "-" : partitions,
      said?.connections.map { "\($0)" } ?? "-", worker.age.map { TerminalText.duration($0) } ?? "-",
      TerminalText.visible(said?.version ?? "-"), TerminalText.visible(places.joined(separator: ", ")),
    ]
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

  // MARK: Kafka

  private var kafka: [(name: String, text: String)] {
    guard let kafka = report.sample.kafka.value else { return [("Kafka", "away")] }
    let brokers = kafka.cluster.brokers.sorted { $0.key < $1.key }.map { TerminalText.visible($0.value) }
    var facts = [
      (
        "Kafka",
        "\(TerminalText.visible(kafka.cluster.id ?? "without an id")), \(TerminalText.count(brokers.count, "broker")): "
          + shortened(brokers)
      )
    ]
    guard let lag = kafka.lag.value else { return facts }
    if let members = lag.members {
      let hosts = Dictionary(grouping: members.members) { String($0.host.drop { $0 == "/" }) }.sorted { $0.key < $1.key }.map {
        host, members in
        let partitions = members.reduce(0) { $0 + $1.partitions.count }
        let share = "\(TerminalText.count(members.count, "member")), \(TerminalText.count(partitions, "partition"))"
        return TerminalText.visible(host) + (members.count == 1 ? " (\(TerminalText.count(partitions, "partition")))" : " (\(share))")
      }
      let state = "\(TerminalText.visible(report.group)): \(LagWords.state(members))"
      facts.append(("group", state + (hosts.isEmpty ? "" : ": " + shortened(hosts))))
    }
    func behind(_ topic: String, _ records: Int64, _ oldest: Int64?) -> String {
      let age = records == 0 ? "" : ", the oldest " + (oldest.map { TerminalText.duration($0) + " old" } ?? "of unknown age")
      return "\(topic) \(TerminalText.count(records, "record"))\(age)"
    }
    var topics = lag.topics.map { behind($0.topic, $0.records, $0.behind) }
    if let worst = report.worstLane {
      topics.append(behind(report.topics.deliveries, report.laneLags.reduce(0) { $0 + $1.records }, worst.behind))
    }
    facts.append(("behind", topics.joined(separator: "; ")))
    return facts
  }

  private func shortened(_ names: [String]) -> String {
    names.prefix(8).joined(separator: ", ") + (names.count > 8 ? " and \(names.count - 8) more" : "")
  }

  // MARK: Redis

  private var redis: [(name: String, text: String)] {
    guard let redis = report.sample.redis.value else { return [("Redis", "away")] }
    let server = redis.server
    var words = [server.address, server.version.map { "version \($0)" }, server.isPrimary.map { $0 ? "primary" : "replica" }]
    words.append(server.replicas.map { TerminalText.count($0, "replica") })
    words.append(
      server.usedMemory.map { used in
        let maximum = server.maximumMemory ?? 0
        return maximum > 0
          ? "\(TerminalText.size(used)) of \(TerminalText.size(maximum)) (\(TerminalText.share(used, of: maximum)))"
          : "\(TerminalText.size(used)), no maxmemory"
      })
    words.append(server.policy)
    words.append(server.evictedKeys.map { "\($0) evicted" })
    words.append(server.appendsWrites.map { $0 ? "AOF \(server.synchronization ?? "")" : "no AOF" })
    let layouts = (redis.identity.value ?? nil)?.layouts
    words.append(layouts.map { $0.count == 1 ? "layout \($0.upperBound)" : "layouts \($0.lowerBound) to \($0.upperBound)" })
    return [("Redis", words.compactMap { $0.map(TerminalText.visible) }.joined(separator: ", "))]
  }

  private var schedules: [(name: String, text: String)] {
    guard let found = report.sample.redis.value?.schedules?.value, found.pending > 0 else { return [] }
    var whose = found.holders.map { "\(TerminalText.visible($0.application)) \($0.pending)" }
    if found.withoutDevices > 0 { whose.append("\(found.withoutDevices) for targets without a device") }
    let fullest = found.fullest.map { "; partition \($0.partition) has \($0.pending) of them in bucket \($0.bucket), where most are" } ?? ""
    return [("schedules", "\(TerminalText.count(found.pending, "request")) pending: \(shortened(whose))\(fullest)")]
  }

  private var population: [(name: String, text: String)] {
    guard let found = report.sample.redis.value?.population?.value else { return [] }
    var mailboxes =
      "\(number(found.notifications, "notification")) \(found.notifications.value == 1 ? "waits" : "wait") in \(number(found.mailboxes, "mailbox"))"
    let seen = found.mailboxes.isExact ? "" : " of those seen"
    if let largest = found.largest.first {
      mailboxes += "; the largest\(seen) has \(largest.entries), of \(TerminalText.device(largest.token))"
    }
    if let oldest = found.oldest.first, let time = oldest.oldest {
      let age = TerminalText.duration(max(0, report.sample.time - time))
      mailboxes += "; the oldest\(seen) is \(age) old, of \(TerminalText.device(oldest.token))"
    }
    var facts = [
      ("devices", "\(number(found.devices)) registered, \(number(found.connected)) connected"), ("mailboxes", mailboxes),
    ]
    if !found.isExact {
      facts.append(
        (
          "sample",
          "\(TerminalText.count(found.keysScanned, "key")) seen, \(TerminalText.count(found.devicesRead, "device")) and \(TerminalText.count(found.mailboxesRead, "mailbox")) read; ± is the 95% interval"
        ))
    }
    return facts
  }

  private func number(_ estimate: Estimate) -> String {
    estimate.isExact ? "\(estimate.value)" : "about \(estimate.value) (±\(estimate.margin))"
  }

  private func number(_ estimate: Estimate, _ noun: String) -> String {
    estimate.isExact ? TerminalText.count(estimate.value, noun) : "\(number(estimate)) \(TerminalText.plural(noun))"
  }
}
