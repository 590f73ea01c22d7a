package import EventLoop
package import JSON
import Kafka
import Notifications
package import Store
import Worker

/// Something that a report says of a cluster in a sentence.
package struct Finding: Sendable, Equatable {
  /// Whether it is a problem, and not only a note. Any problem sets the exit code 1.
  package var isProblem: Bool
  /// Its name for programs.
  package var name: String
  /// What is wrong, and what to do. Names of others are in it as they are, so a printer makes it safe for a terminal.
  package var sentence: String
  /// The members of an object for programs.
  package var facts: JSONValue

  private static func problem(_ name: String, _ sentence: String, _ facts: JSONValue.Members = [:]) -> Finding {
    Finding(isProblem: true, name: name, sentence: sentence, facts: .object(facts))
  }

  private static func note(_ name: String, _ sentence: String, _ facts: JSONValue.Members = [:]) -> Finding {
    Finding(isProblem: false, name: name, sentence: sentence, facts: .object(facts))
  }
}

// MARK: Kafka

extension Finding {
  static func kafkaAway(_ reason: String) -> Finding { .problem("kafka-away", "Kafka does not answer at \(reason)") }
  static func topicMissing(_ topic: String) -> Finding {
    .problem("topic-missing", "there is no topic \(topic): 'carillon topics create' makes it", ["topic": topic])
  }
  static func topicDiffers(_ topic: String, _ differences: [String]) -> Finding {
    .problem(
      "topic-differs", "\(topic) \(differences.joined(separator: ", ")): a guarantee rests on that",
      ["topic": topic, "differences": differences])
  }
  static func leaderless(_ topic: String, _ partitions: [Int32]) -> Finding {
    .problem(
      "without-leader",
      "\(topic): \(numbers(partitions)) can neither be read nor written, for no broker leads: is a broker away?",
      ["topic": topic, "partitions": partitions])
  }
  static func replicasBehind(_ topic: String, _ partitions: [Int32]) -> Finding {
    .problem(
      "replicas-behind", "\(topic): not all copies of \(numbers(partitions)) are in step: is a broker away?",
      ["topic": topic, "partitions": partitions])
  }
  static func unwritable(_ fault: WriteFault) -> Finding {
    .problem(
      "cannot-be-written", "nothing can be written to \(fault): are brokers away?", ["topic": fault.topic, "partitions": fault.partitions])
  }
  static func unjournaled(topic: String, partitions: [Int32], journal: String, count: Int) -> Finding {
    .problem(
      "without-journal",
      "\(topic): \(numbers(partitions)) wait\(partitions.count == 1 ? "s" : ""), for \(journal) has only \(ReadableText.count(count, "partition")): give it as many as \(topic) has (kafka-topics --alter --partitions)",
      ["topic": topic, "partitions": partitions, "journal": journal, "journalPartitions": count])
  }
  static func ownerless(topic: String, partitions: [Int32]) -> Finding {
    .problem(
      "without-owner", "\(topic): nobody works through \(numbers(partitions)): are transform workers running, and ready?",
      ["topic": topic, "partitions": partitions])
  }
  static func missed(_ partition: TopicPartition, _ range: Range<Int64>) -> Finding {
    .problem(
      "missed",
      "\(partition): \(ReadableText.count(range.count, "record")) \(range.count == 1 ? "is gone and was" : "are gone and were") not finished: offsets \(range.lowerBound) to \(range.upperBound - 1)",
      [
        "topic": partition.topic, "partition": partition.partition, "records": range.count, "first": range.lowerBound,
        "last": range.upperBound - 1,
      ])
  }
  static func beyondEnd(_ partition: TopicPartition, committed: Int64, end: Int64) -> Finding {
    .problem(
      "beyond-end",
      "\(partition): offset \(committed) is committed, and the log ends at \(end): the topic was made again, or has lost its end",
      ["topic": partition.topic, "partition": partition.partition, "committed": committed, "logEnd": end])
  }
  static func openTransaction(_ open: OpenTransaction) -> Finding {
    .problem(
      "open-transaction",
      "\(open.partition): a transaction is open at offset \(open.offset) since \(Timestamp.text(open.since)): it holds back \(ReadableText.count(open.records, "record")) so far; end its producer, or have Kafka abort it (kafka-transactions.sh abort)",
      [
        "topic": open.partition.topic, "partition": open.partition.partition, "offset": open.offset, "records": open.records,
        "since": Timestamp.text(open.since),
      ])
  }
  static func laneStands(topic: String, _ lag: FanOutLag) -> Finding {
    let time = lag.behind.map { " for " + ReadableText.duration(milliseconds: $0) } ?? ""
    return .problem(
      "lane-stands-still",
      "\(topic)/\(lag.partition): lane \(lag.lane) of \(lag.worker) stands still\(time) and has not taken \(ReadableText.count(lag.records, "record")): its devices get nothing; look at its log, and start the worker again",
      [
        "topic": topic, "worker": lag.worker, "lane": lag.lane, "partition": lag.partition, "records": lag.records, "behindMs": lag.behind,
      ])
  }
  static func unread(topic: String, partitions: [Int32]) -> Finding {
    .problem(
      "unread-deliveries",
      "\(topic): records come to \(numbers(partitions)), which no lane reads; devices find them in their mailboxes when they connect again",
      ["topic": topic, "partitions": partitions])
  }

  static func producersTime(_ topic: String) -> Finding {
    .note(
      "producers-time",
      "\(topic) has the times of its producers (CreateTime), whose clocks decide which request is the newest: the embedded broker cannot give its own"
    )
  }
  static func settingsUnknown(_ reason: String) -> Finding {
    .note("settings-unknown", "the settings of the topics were not checked: \(reason)")
  }
  static func lagUnknown(_ reason: String) -> Finding {
    .note("lag-unknown", "how far the group is behind is not known: \(reason)")
  }
  static func logsUnknown(_ reason: String) -> Finding {
    .note("logs-unknown", "what is in the other topics is not known: \(reason)")
  }
  static var ownersUntold: Finding { .note("owners-unknown", "the embedded broker does not tell who works through a partition") }
  static func ownersUnknown(_ reason: String) -> Finding {
    .note("owners-unknown", "who works through the partitions is not known: \(reason)")
  }
  static func transactionsUnknown(_ reason: String) -> Finding {
    .note("transactions-unknown", "which transactions are open is not known: \(reason)")
  }

  private static func numbers(_ partitions: [Int32]) -> String {
    (partitions.count == 1 ? "partition " : "partitions ") + PartitionNames.text(partitions)
  }
}

// MARK: Applications

extension Finding {
  static func stopped(_ application: Name, _ stop: ApplicationStop) -> Finding {
    .note(
      "stopped",
      "\(application) is stopped since \(Timestamp.text(stop.from)) by \(stop.by)\(stop.reason.map { ": \($0)" } ?? ""); 'carillon applications start \(application)' starts it again",
      ["application": application, "from": Timestamp.text(stop.from), "by": stop.by, "reason": stop.reason])
  }
  static func limited(_ application: Name, _ limit: RateLimit) -> Finding {
    .note(
      "limited", "\(application) is limited to \(limit.words): 'carillon applications limit' changes that",
      [
        "application": application, "perTarget": limit.perTarget, "perApplication": limit.perApplication,
        "windowMilliseconds": limit.window,
      ])
  }
  static func moreApplications(_ count: Int) -> Finding {
    .note("more-applications", "\(count) more applications are stopped or limited: 'carillon applications list' lists them")
  }
  static func applicationsUnknown(_ reason: String) -> Finding {
    .note("applications-unknown", "which applications are stopped or limited is not known: \(reason)")
  }
}

// MARK: Redis

extension Finding {
  static func redisAway(_ reason: String) -> Finding { .problem("redis-away", "Redis does not answer: \(reason)") }
  static var redisNotGiven: Finding { .note("redis-not-given", "workers and fan-out lanes are not known without --redis") }
  static func unreadable(_ part: String, _ reason: String) -> Finding {
    .problem("redis-unreadable", "the cluster's \(part) in Redis cannot be read: \(reason)", ["part": part])
  }
  static func redisUnsuitable(_ reason: String) -> Finding { .problem("redis-unsuitable", "Redis: \(reason)") }
  static func redis(_ text: String) -> Finding { .note("redis", "Redis: \(text)") }
  static func evicted(keys: Int64) -> Finding {
    .problem(
      "redis-evicted",
      "Redis has evicted \(ReadableText.count(keys, "key")) since it was started, and devices and notifications with them: set maxmemory-policy to noeviction, empty it, and restore it with 'carillon rebuild'; CONFIG RESETSTAT removes this line",
      ["keys": keys])
  }
  static func memoryShort(used: Int64, maximum: Int64) -> Finding {
    let what =
      used >= maximum
      ? " and is full: raise maxmemory; until then nothing is delivered, and workers cannot report themselves"
      : ": raise maxmemory before it is full, for then nothing is delivered any more"
    return .problem(
      "redis-memory", "Redis has used \(ReadableText.size(used)) of \(ReadableText.size(maximum))\(what)",
      ["usedMemory": used, "maximumMemory": maximum])
  }
  static var notSaved: Finding {
    .problem("redis-not-saved", "Redis could not write what it keeps on disk: look at its log, and at the room on its disk")
  }
  static func otherCluster(found: ClusterIdentity, own: ClusterIdentity) -> Finding {
    .problem(
      "other-cluster",
      "this Redis belongs to another cluster: it has \(own.differences(from: found).joined(separator: "; ")): give --redis, --kafka, --topic-prefix, --buckets and --cluster of one cluster",
      ["kafka": found.kafka, "topicPrefix": found.topicPrefix])
  }
  static func populationUnknown(_ reason: String) -> Finding {
    .note("population-unknown", "devices and mailboxes were not counted: \(reason)")
  }
}

// MARK: Workers

extension Finding {
  static func unready(_ worker: Workers.Listing) -> Finding {
    let shown = (worker.report?.unready ?? []).prefix(3).map { condition in
      let place = condition.lane.map { "\($0), " } ?? ""
      return "\(place)\(condition.name): \(condition.reason) (for \(ReadableText.duration(milliseconds: worker.age(of: condition))))"
    }
    let more = (worker.report?.unreadyCount ?? 0) - shown.count
    return .problem(
      "worker-not-ready", "\(worker.name) is not ready: \(shown.joined(separator: "; "))\(more > 0 ? "; and \(more) more" : "")",
      ["worker": worker.name, "conditions": worker.conditions])
  }
  static func clockDiffers(_ name: Name, ahead: Int64) -> Finding {
    let difference = "\(ReadableText.duration(milliseconds: abs(ahead))) \(ahead < 0 ? "behind" : "ahead of")"
    return .problem(
      "worker-clock",
      "the clock of \(name) is \(difference) that of Redis: notifications expire early or late there; set it right, or Redis' clock where all workers differ alike",
      ["worker": name, "aheadMs": ahead])
  }
  static func silent(_ worker: Workers.Listing) -> Finding {
    let (silent, forgotten) = (worker.silentMilliseconds, Workers.forgottenMilliseconds)
    return .problem(
      "worker-silent",
      "\(worker.name) has said nothing for \(ReadableText.duration(milliseconds: silent)): it was killed, hangs, or cannot write to Redis; it is forgotten after \(ReadableText.duration(milliseconds: forgotten))",
      ["worker": worker.name, "silentMs": silent])
  }
  static func noWorker(_ role: String) -> Finding {
    let what = role == "transform" ? "requests wait in Kafka" : "no device can be connected"
    return .problem("no-worker", "no \(role) worker runs: \(what); start 'carillon \(role)'", ["role": role])
  }
  static func draining(_ name: Name) -> Finding { .note("worker-draining", "\(name) is draining, and about to end", ["worker": name]) }
  static func unreadable(_ name: Name) -> Finding {
    .note("worker-unreadable", "what \(name) says of itself cannot be read: is it of a later version?", ["worker": name])
  }
  static func versions(_ versions: [String]) -> Finding {
    .note("versions", "workers of different versions run: \(versions.joined(separator: ", "))", ["versions": versions])
  }
  static func settingDiffers(_ difference: SettingDifference) -> Finding {
    .note(
      "setting-differs", "\(difference.text): a rolling change ends with the same value everywhere", ["setting": difference.key])
  }
  static var workersUnknown: Finding {
    .note("workers-unknown", "the workers report themselves to Redis, so nothing is known of them but the group's members")
  }
}

extension ReadableText {
  /// Bytes with one decimal: `512 B`, `1.2 MiB`.
  package static func size(_ bytes: Int64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"]
    guard bytes >= 1024 else { return "\(bytes) B" }
    var (size, unit) = (Double(bytes) / 1024, 0)
    while size >= 1024, unit < units.count - 1 { (size, unit) = (size / 1024, unit + 1) }
    let tenths = Int64(size * 10)
    return "\(tenths / 10).\(tenths % 10) \(units[unit])"
  }
}

extension Workers.Listing {
  /// The conditions that are not ready, for programs.
  package var conditions: [JSONValue] {
    (report?.unready ?? []).map { condition in
      .object([
        "name": condition.name, "lane": condition.lane, "reason": condition.reason, "since": Timestamp.text(condition.since),
        "forMs": age(of: condition),
      ])
    }
  }
}
