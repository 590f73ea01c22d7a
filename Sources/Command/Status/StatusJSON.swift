import JSON
import Kafka
import Notifications
import Operations
import Store
import Worker

/// A report for programs: objects for each worker, each topic or partition, Kafka, Redis and the counts, then one for the problems.
enum StatusJSON {
  static func lines(_ report: ClusterReport, _ view: StatusPrinter.View) -> [String] {
    var objects = report.topics.flatMap { topic in
      view == .partitions ? topic.partitions.map { partition($0, report) } : [self.topic(topic, report)]
    }
    if view == .all {
      let (kafka, redis) = (report.sample.kafka.value, report.sample.redis?.value)
      let parts = [
        ("kafka", kafka.map { self.kafka($0, report) }), ("redis", redis.map { self.redis($0) }),
        ("schedules", redis?.schedules?.value.map(schedules)), ("population", redis?.population?.value.map(population)),
      ]
      objects = report.workers.map { worker($0, report) } + objects
      objects += parts.compactMap { name, part in part.map { JSONValue.object([name: $0]) } }
    }
    return (objects + [summary(report)]).map(\.text)
  }

  // MARK: Workers

  private static func worker(_ worker: Workers.Listing, _ report: ClusterReport) -> JSONValue {
    let object = JSONValue.object([
      "worker": worker.name, "state": worker.standing.rawValue, "silentMs": worker.silentMilliseconds,
    ])
    guard let said = worker.report else { return object }
    let lags = report.laneLags.filter { $0.worker == worker.name }.map { lag in
      JSONValue.object(["lane": lag.lane, "partition": lag.partition, "records": lag.records, "behindMs": lag.behind])
    }
    return object.appending([
      "roles": said.roles, "version": said.version, "started": Timestamp.text(said.started), "admin": said.admin, "devices": said.devices,
      "lanes": said.lanes, "connections": said.connections, "partitions": said.partitions,
      "lags": lags, "clockAheadMs": said.clockAhead, "conditions": worker.conditions,
    ])
  }

  // MARK: Topics

  private static func topic(_ topic: TopicLag, _ report: ClusterReport) -> JSONValue {
    let isKnown = topic.partitions.contains { $0.readers != nil }
    return .object(["topic": topic.topic, "partitions": topic.partitions.count])
      .appending(contentsOf: state(topic.state, report))
      .appending([
        "worstPartition": topic.worst?.lag.partition.partition, "withoutReader": isKnown ? topic.withoutReader : nil,
      ])
  }

  private static func partition(_ partition: PartitionState, _ report: ClusterReport) -> JSONValue {
    let lag = partition.lag
    return .object([
      "topic": lag.partition.topic, "partition": lag.partition.partition, "logStart": lag.log.lowerBound, "logEnd": lag.log.upperBound,
      "committed": lag.committed,
    ])
    .appending(contentsOf: state(partition.state, report))
    .appending(["readers": partition.readers])
  }

  private static func state(_ state: ReadState, _ report: ClusterReport) -> JSONValue {
    .object([
      "logRecords": state.logged, "newest": state.newest.map(Timestamp.text),
      "newestAgeMs": state.newest.map { max(0, report.sample.time - $0) }, "inPerSecond": rate(state.in), "outPerSecond": rate(state.out),
      "records": state.records, "behindMs": state.behind, "state": state.catchUp?.facts.name,
      "caughtUpInMs": state.catchUp?.facts.milliseconds, "missed": state.missed,
    ])
  }

  /// At most three decimals.
  private static func rate(_ rate: Double?) -> Double? { rate.map { ($0 * 1000).rounded() / 1000 } }

  // MARK: Kafka and Redis

  private static func kafka(_ kafka: KafkaState, _ report: ClusterReport) -> JSONValue {
    let topics = report.cluster.topics.all.compactMap { kafka.cluster.topics[$0] }.map { topic in
      JSONValue.object([
        "topic": topic.name, "partitions": topic.partitions.count, "replication": topic.partitions.map(\.replicas).min() ?? 0,
        "differences": kafka.settings.value?[topic.name]?.differences,
      ])
    }
    let members = report.members?.members.map { member in
      JSONValue.object(["member": member.id, "client": member.client, "host": member.host, "partitions": member.partitions.count])
    }
    return .object([
      "id": kafka.cluster.id, "brokers": kafka.cluster.brokers.sorted { $0.key < $1.key }.map(\.value), "members": members,
      "topics": topics,
    ])
  }

  private static func redis(_ redis: RedisState) -> JSONValue {
    let server = redis.server
    let identity = redis.identity.value ?? nil
    return .object([
      "address": server.address, "version": server.version, "role": server.isPrimary.map { $0 ? "primary" : "replica" },
      "replicas": server.replicas, "usedMemory": server.usedMemory, "maximumMemory": server.maximumMemory, "policy": server.policy,
      "evictedKeys": server.evictedKeys, "appendOnly": server.appendsWrites, "appendFsync": server.synchronization,
      "saved": server.isSaved, "kafka": identity?.kafka, "topicPrefix": identity?.topicPrefix,
      "layout": identity?.layouts?.upperBound, "oldestLayout": identity?.layouts?.lowerBound,
    ])
  }

  // MARK: Counts

  private static func population(_ found: Population.Counts) -> JSONValue {
    .object([
      "devices": found.devices, "connected": found.connected, "mailboxes": found.mailboxes, "notifications": found.entries,
      "exact": found.isExact,
    ])
  }

  /// How many applications are listed.
  private static let listedHolders = 100

  private static func schedules(_ found: ScheduleHolders) -> JSONValue {
    .object([
      "pending": found.pending, "withoutDevices": found.withoutDevices,
      "applications": found.holders.prefix(listedHolders).map {
        JSONValue.object(["application": $0.application, "pending": $0.pending])
      },
      "fullest": found.fullest.map {
        JSONValue.object(["bucket": $0.bucket, "partition": $0.partition, "pending": $0.pending])
      },
    ])
  }

  // MARK: Problems

  private static func summary(_ report: ClusterReport) -> JSONValue {
    .object([
      "time": Timestamp.text(report.sample.time), "topicPrefix": report.cluster.topics.prefix, "group": report.cluster.group,
      "groupState": report.members?.state, "members": report.members?.members.count,
      "kafkaAnswers": report.sample.kafka.value != nil, "redisAnswers": report.sample.redis.map { $0.value != nil },
      "workers": report.sample.redis?.value?.workers.value.map { _ in report.workers.count }, "lanes": report.lanes?.count,
      "problems": report.problems.map { finding($0, "problem") }, "notes": report.notes.map { finding($0, "note") },
    ])
  }

  private static func finding(_ finding: Finding, _ kind: String) -> JSONValue {
    .object([kind: finding.name]).appending(contentsOf: finding.facts).appending(["sentence": finding.sentence])
  }
}
