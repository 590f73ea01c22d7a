import JSON
import Kafka
import Notifications
import Operations

/// A report for a program. It has an object for each topic or partition, then one for the problems.
enum LagJSON {
  static func lines(_ report: LagReport, showsPartitions: Bool) -> [String] {
    var objects: [[JSONValue.Member]] = []
    for topic in report.topics {
      if showsPartitions { objects += topic.partitions.map { partition($0, report.group) } } else { objects.append(summary(topic, report)) }
    }
    for topic in report.logs {
      if showsPartitions {
        objects += topic.partitions.map { partition($0, report.time) }
      } else {
        objects.append(summary(topic, report.time))
      }
    }
    objects.append(summary(report))
    return objects.map { JSONValue.object($0).text }
  }

  // MARK: Topics of the group

  private static func summary(_ topic: TopicLag, _ report: LagReport) -> [JSONValue.Member] {
    [
      member("topic", .string(topic.topic)), member("group", .string(report.group)),
      member("partitions", .integer(Int64(topic.partitions.count))),
    ] + progress(topic.records, topic.behind, topic.rates, topic.catchUp) + [
      member("worstPartition", topic.worst.map { .integer(Int64($0.lag.partition.partition)) } ?? .null),
      member("missed", .integer(topic.missed)),
      member(
        "withoutOwner", topic.partitions.contains { $0.owner == .unknown } ? .null : .array(topic.ownerless.map { .integer(Int64($0)) })),
    ]
  }

  private static func partition(_ state: PartitionState, _ group: String) -> [JSONValue.Member] {
    let lag = state.lag
    return [
      member("topic", .string(lag.partition.topic)), member("partition", .integer(Int64(lag.partition.partition))),
      member("group", .string(group)), member("logStart", .integer(lag.log.lowerBound)), member("logEnd", .integer(lag.log.upperBound)),
      member("committed", lag.committed.map { .integer($0) } ?? .null),
      member("oldest", lag.oldest.map { .string(Timestamp.text($0)) } ?? .null),
    ] + progress(state.records, state.behind, state.rates, state.catchUp) + [
      member("missed", .integer(lag.missed)), member("owner", owner(state.owner)),
    ]
  }

  private static func progress(_ records: Int64, _ behind: Int64, _ rates: LagRates?, _ catchUp: CatchUp) -> [JSONValue.Member] {
    let (state, milliseconds): (String, JSONValue) =
      switch catchUp {
      case .atEnd: ("at-end", .integer(0))
      case .keepsUp: ("keeps-up", .integer(0))
      case .after(let milliseconds): ("catches-up", .integer(milliseconds))
      case .never: ("falls-behind", .null)
      case .unknown: ("unknown", .null)
      }
    return [
      member("records", .integer(records)), member("behindMs", .integer(behind)), member("inPerSecond", rate(rates?.in)),
      member("outPerSecond", rate(rates?.out)), member("state", .string(state)), member("caughtUpInMs", milliseconds),
    ]
  }

  /// The owner of a partition: null if there is none, `"unknown"` if unknown.
  private static func owner(_ owner: PartitionOwner) -> JSONValue {
    switch owner {
    case .member(let each):
      .object([member("member", .string(each.id)), member("client", .string(each.client)), member("host", .string(each.host))])
    case .nobody: .null
    case .unknown: .string("unknown")
    }
  }

  // MARK: The other topics

  private static func summary(_ topic: TopicLog, _ now: Int64) -> [JSONValue.Member] {
    var members =
      [
        member("topic", .string(topic.topic)), member("partitions", .integer(Int64(topic.partitions.count))),
        member("records", .integer(topic.records)),
      ] + newest(topic.newest, now) + [member("inPerSecond", rate(topic.rate))]
    if let worst = topic.worst {
      members += [
        member("unread", .integer(topic.unread ?? 0)), member("behindMs", worst.behind.map { .integer($0) } ?? .null),
        member("worstPartition", worst.records > 0 ? .integer(Int64(worst.partition)) : .null),
      ]
    }
    let readers = topic.partitions.compactMap { each in each.readers.map { (each.log.partition.partition, $0) } }
    if !readers.isEmpty {
      members.append(member("readPartitions", .array(readers.filter { !$0.1.isEmpty }.map { .integer(Int64($0.0)) })))
    }
    return members
  }

  private static func partition(_ each: TopicLog.Partition, _ now: Int64) -> [JSONValue.Member] {
    var members =
      [
        member("topic", .string(each.log.partition.topic)), member("partition", .integer(Int64(each.log.partition.partition))),
        member("logStart", .integer(each.log.offsets.lowerBound)), member("logEnd", .integer(each.log.offsets.upperBound)),
        member("records", .integer(Int64(each.log.offsets.count))),
      ] + newest(each.log.newest, now) + [member("inPerSecond", rate(each.rate))]
    if let worst = each.worst {
      members += [
        member("unread", .integer(worst.records)), member("behindMs", worst.behind.map { .integer($0) } ?? .null),
        member("lags", .array(each.lags.map { .object(lag($0)) })),
      ]
    }
    if let readers = each.readers { members.append(member("lanes", .array(readers.map { .string($0.text) }))) }
    return members
  }

  /// A fan-out lane's lag.
  static func lag(_ lag: FanOutLag) -> [JSONValue.Member] {
    [
      member("worker", .string(lag.worker.text)), member("lane", .string(lag.lane)), member("partition", .integer(Int64(lag.partition))),
      member("records", .integer(lag.records)), member("behindMs", lag.behind.map { .integer($0) } ?? .null),
    ]
  }

  private static func newest(_ newest: Int64?, _ now: Int64) -> [JSONValue.Member] {
    [
      member("newest", newest.map { .string(Timestamp.text($0)) } ?? .null),
      member("newestAgeMs", newest.map { .integer(max(0, now - $0)) } ?? .null),
    ]
  }

  // MARK: Problems

  private static func summary(_ report: LagReport) -> [JSONValue.Member] {
    [
      member("time", .string(Timestamp.text(report.time))), member("group", .string(report.group)),
      member("groupState", report.members.map { .string($0.state) } ?? .null),
      member("members", report.members.map { .integer(Int64($0.members.count)) } ?? .null),
      member("lanes", report.lanes.map { .integer(Int64($0.count)) } ?? .null),
      member("problems", .array(report.problems.map { .object(problem($0)) })),
      member("notes", .array(report.gaps.map { .string(LagWords.gap($0)) })),
    ]
  }

  static func problem(_ problem: LagProblem) -> [JSONValue.Member] {
    let sentence = member("sentence", .string(LagWords.problem(problem)))
    func numbers(_ partitions: [Int32]) -> JSONValue { .array(partitions.map { .integer(Int64($0)) }) }
    func place(_ partition: TopicPartition) -> [JSONValue.Member] {
      [member("topic", .string(partition.topic)), member("partition", .integer(Int64(partition.partition)))]
    }
    switch problem {
    case .ownerless(let topic, let partitions):
      return [
        member("problem", .string("without-owner")), member("topic", .string(topic)), member("partitions", numbers(partitions)), sentence,
      ]
    case .missed(let partition, let range):
      return [member("problem", .string("missed"))] + place(partition) + [
        member("records", .integer(Int64(range.count))), member("first", .integer(range.lowerBound)),
        member("last", .integer(range.upperBound - 1)), sentence,
      ]
    case .beyondEnd(let partition, let committed, let end):
      return [member("problem", .string("beyond-end"))] + place(partition) + [
        member("committed", .integer(committed)), member("logEnd", .integer(end)), sentence,
      ]
    case .openTransaction(let open):
      return [member("problem", .string("open-transaction"))] + place(open.partition) + [
        member("offset", .integer(open.offset)), member("records", .integer(open.records)),
        member("since", .string(Timestamp.text(open.since))), sentence,
      ]
    case .noLane: return [member("problem", .string("no-lane")), sentence]
    case .laneStands(let topic, let lag):
      return [member("problem", .string("lane-stands-still")), member("topic", .string(topic))] + Self.lag(lag) + [sentence]
    case .unjournaled(let topic, let partitions, let journal, let count):
      return [
        member("problem", .string("without-journal")), member("topic", .string(topic)), member("partitions", numbers(partitions)),
        member("journal", .string(journal)), member("journalPartitions", .integer(Int64(count))), sentence,
      ]
    case .unread(let topic, let partitions):
      return [
        member("problem", .string("unread-deliveries")), member("topic", .string(topic)), member("partitions", numbers(partitions)),
        sentence,
      ]
    }
  }

  private static func member(_ key: String, _ value: JSONValue) -> JSONValue.Member { .init(key: key, value: value) }

  /// At most three decimals.
  private static func rate(_ rate: Double?) -> JSONValue { rate.map { .number(String(($0 * 1000).rounded() / 1000)) } ?? .null }
}
