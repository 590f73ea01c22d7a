import JSON
import Kafka
import Notifications
import Operations

/// A report for a program. It has an object for each topic or partition, then one for the problems.
enum LagJSON {
  static func lines(_ report: LagReport, showsPartitions: Bool) -> [String] {
    let topics = report.topics.flatMap { topic in
      showsPartitions ? topic.partitions.map { partition($0, report.group) } : [summary(topic, report.group)]
    }
    let logs = report.logs.flatMap { topic in
      showsPartitions ? topic.partitions.map { partition($0, report.time) } : [summary(topic, report.time)]
    }
    return (topics + logs + [summary(report)]).map(\.text)
  }

  // MARK: Topics of the group

  private static func summary(_ topic: TopicLag, _ group: String) -> JSONValue {
    .object(["topic": topic.topic, "group": group, "partitions": topic.partitions.count])
      .appending(contentsOf: progress(topic.records, topic.behind, topic.rates, topic.catchUp))
      .appending([
        "worstPartition": topic.worst?.lag.partition.partition, "missed": topic.missed,
        "withoutOwner": topic.partitions.contains { $0.owner == .unknown } ? nil : topic.ownerless,
      ])
  }

  private static func partition(_ state: PartitionState, _ group: String) -> JSONValue {
    let lag = state.lag
    return place(lag.partition)
      .appending([
        "group": group, "logStart": lag.log.lowerBound, "logEnd": lag.log.upperBound, "committed": lag.committed,
        "oldest": lag.oldest.map(Timestamp.text),
      ])
      .appending(contentsOf: progress(state.records, state.behind, state.rates, state.catchUp))
      .appending(["missed": lag.missed, "owner": owner(state.owner)])
  }

  private static func place(_ partition: TopicPartition) -> JSONValue {
    .object(["topic": partition.topic, "partition": partition.partition])
  }

  private static func progress(_ records: Int64, _ behind: Int64, _ rates: LagRates?, _ catchUp: CatchUp) -> JSONValue {
    let (state, milliseconds): (String, Int64?) =
      switch catchUp {
      case .atEnd: ("at-end", 0)
      case .keepsUp: ("keeps-up", 0)
      case .after(let milliseconds): ("catches-up", milliseconds)
      case .never: ("falls-behind", nil)
      case .unknown: ("unknown", nil)
      }
    return .object([
      "records": records, "behindMs": behind, "inPerSecond": rate(rates?.in), "outPerSecond": rate(rates?.out), "state": state,
      "caughtUpInMs": milliseconds,
    ])
  }

  /// The owner of a partition: null if there is none, `"unknown"` if unknown.
  private static func owner(_ owner: PartitionOwner) -> JSONValue {
    switch owner {
    case .member(let member): self.member(member)
    case .nobody: .null
    case .unknown: "unknown"
    }
  }

  /// A member of the group.
  static func member(_ member: GroupMembers.Member) -> JSONValue {
    .object(["member": member.id, "client": member.client, "host": member.host])
  }

  // MARK: The other topics

  private static func summary(_ topic: TopicLog, _ now: Int64) -> JSONValue {
    var object = JSONValue.object([
      "topic": topic.topic, "partitions": topic.partitions.count, "records": topic.records, "newest": topic.newest.map(Timestamp.text),
      "newestAgeMs": topic.newest.map { max(0, now - $0) }, "inPerSecond": rate(topic.rate),
    ])
    if let worst = topic.worst {
      object = object.appending([
        "unread": topic.unread ?? 0, "behindMs": worst.behind, "worstPartition": worst.records > 0 ? worst.partition : nil,
      ])
    }
    guard topic.partitions.contains(where: { $0.readers != nil }) else { return object }
    return object.appending(["readPartitions": topic.partitions.filter { $0.readers?.isEmpty == false }.map(\.log.partition.partition)])
  }

  private static func partition(_ each: TopicLog.Partition, _ now: Int64) -> JSONValue {
    let log = each.log
    var object = place(log.partition).appending([
      "logStart": log.offsets.lowerBound, "logEnd": log.offsets.upperBound, "records": log.offsets.count,
      "newest": log.newest.map(Timestamp.text), "newestAgeMs": log.newest.map { max(0, now - $0) }, "inPerSecond": rate(each.rate),
    ])
    if let worst = each.worst {
      object = object.appending(["unread": worst.records, "behindMs": worst.behind, "lags": each.lags.map(lag)])
    }
    return each.readers.map { object.appending(["lanes": $0]) } ?? object
  }

  /// A fan-out lane's lag.
  static func lag(_ lag: FanOutLag) -> JSONValue {
    .object([
      "worker": lag.worker, "lane": lag.lane, "partition": lag.partition, "records": lag.records, "behindMs": lag.behind,
    ])
  }

  // MARK: Problems

  private static func summary(_ report: LagReport) -> JSONValue {
    .object([
      "time": Timestamp.text(report.time), "group": report.group, "groupState": report.members?.state,
      "members": report.members?.members.count, "lanes": report.lanes?.count, "problems": report.problems.map(problem),
      "notes": report.gaps.map(LagWords.gap),
    ])
  }

  static func problem(_ problem: LagProblem) -> JSONValue {
    let (name, facts): (String, JSONValue) =
      switch problem {
      case .ownerless(let topic, let partitions): ("without-owner", .object(["topic": topic, "partitions": partitions]))
      case .missed(let partition, let range):
        (
          "missed",
          place(partition).appending(["records": range.count, "first": range.lowerBound, "last": range.upperBound - 1])
        )
      case .beyondEnd(let partition, let committed, let end):
        ("beyond-end", place(partition).appending(["committed": committed, "logEnd": end]))
      case .openTransaction(let open):
        (
          "open-transaction",
          place(open.partition).appending(["offset": open.offset, "records": open.records, "since": Timestamp.text(open.since)])
        )
      case .noLane: ("no-lane", [:])
      case .laneStands(let topic, let lag): ("lane-stands-still", .object(["topic": topic]).appending(contentsOf: self.lag(lag)))
      case .unjournaled(let topic, let partitions, let journal, let count):
        ("without-journal", .object(["topic": topic, "partitions": partitions, "journal": journal, "journalPartitions": count]))
      case .unread(let topic, let partitions): ("unread-deliveries", .object(["topic": topic, "partitions": partitions]))
      }
    return .object(["problem": name]).appending(contentsOf: facts).appending(["sentence": LagWords.problem(problem)])
  }

  /// At most three decimals.
  private static func rate(_ rate: Double?) -> Double? { rate.map { ($0 * 1000).rounded() / 1000 } }
}
