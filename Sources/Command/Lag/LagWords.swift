import Kafka
import Notifications
import Operations
import Worker

/// What is wrong or unknown, in words.
enum LagWords {
  static func problem(_ problem: LagProblem) -> String {
    switch problem {
    case .ownerless(let topic, let partitions):
      "\(topic): nobody works through \(numbers(partitions)): are transform workers running, and ready?"
    case .missed(let partition, let range):
      "\(partition): \(TerminalText.count(range.count, "record")) \(range.count == 1 ? "is gone and was" : "are gone and were") not finished: offsets \(range.lowerBound) to \(range.upperBound - 1)"
    case .beyondEnd(let partition, let committed, let end):
      "\(partition): offset \(committed) is committed, and the log ends at \(end): the topic was made again, or has lost its end"
    case .openTransaction(let open):
      "\(open.partition): a transaction is open at offset \(open.offset) since \(Timestamp.text(open.since)): it holds back \(TerminalText.count(Int(clamping: open.records), "record")) so far; end its producer, or have Kafka abort it (kafka-transactions.sh abort)"
    case .noLane: "no fan-out lane is alive: no device can be connected"
    case .laneStands(let topic, let lag):
      "\(topic)/\(lag.partition): lane \(TerminalText.visible(lag.lane)) of \(TerminalText.visible(lag.worker)) stands still\(lag.behind.map { " for " + TerminalText.duration($0) } ?? "") and has not taken \(TerminalText.count(Int(clamping: lag.records), "record")): its devices get nothing; look at its log, and start the worker again"
    case .unjournaled(let topic, let partitions, let journal, let count):
      "\(topic): \(numbers(partitions)) wait\(partitions.count == 1 ? "s" : ""), for \(journal) has only \(TerminalText.count(count, "partition")): give it as many as \(topic) has (kafka-topics --alter --partitions)"
    case .unread(let topic, let partitions):
      "\(topic): records come to \(numbers(partitions)), which no lane reads; devices find them in their mailboxes when they connect again"
    }
  }

  static func gap(_ gap: LagGap) -> String {
    switch gap {
    case .topicMissing(let topic): StatusWords.problem(.topicMissing(topic))
    case .ownersUntold: "the embedded broker does not tell who works through a partition"
    case .transactionsUnknown(let reason): "which transactions are open is not known: \(reason)"
    case .ownersUnknown(let reason): "who works through the partitions is not known: \(reason)"
    case .redisNotGiven: "the fan-out lanes are not known without --redis"
    case .redisAway(let reason): "the fan-out lanes are not known: \(reason)"
    case .redisFull: "the fan-out lanes are not known: Redis is full, and may take no heartbeats; see 'carillon status'"
    }
  }

  static func numbers(_ partitions: [Int32]) -> String {
    (partitions.count == 1 ? "partition " : "partitions ") + PartitionNames.text(partitions)
  }

  /// A rate with one decimal where it is small.
  static func rate(_ rate: Double?) -> String {
    guard let rate else { return "-" }
    if rate >= 100 || rate == 0 { return String(Int64(saturating: rate.rounded())) }
    let tenths = Int64(saturating: (rate * 10).rounded())
    return tenths == 0 ? "<0.1" : "\(tenths / 10).\(tenths % 10)"
  }

  static func catchUp(_ catchUp: CatchUp) -> String {
    switch catchUp {
    case .atEnd: "at the end"
    case .keepsUp: "keeps up"
    case .after(let milliseconds): "in " + TerminalText.duration(milliseconds)
    case .never: "never"
    case .unknown: "-"
    }
  }

  /// How it is with a group: `Stable, 3 members`.
  static func state(_ group: GroupMembers) -> String {
    group.state == "Dead" ? "does not exist" : "\(group.state), \(TerminalText.count(group.members.count, "member"))"
  }

  static func owner(_ owner: PartitionOwner) -> String {
    switch owner {
    case .member(let member): TerminalText.visible("\(member.client) \(member.host.drop { $0 == "/" })")
    case .nobody: "NOBODY"
    case .unknown: "-"
    }
  }
}
