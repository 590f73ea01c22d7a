import JSON
import Kafka
import Notifications
import Operations
import Store
import Worker

/// A report for programs. It has objects for each worker, Kafka, Redis and the counts, then one for the problems.
enum StatusJSON {
  static func lines(_ report: StatusReport) -> [String] {
    let (kafka, redis) = (report.sample.kafka.value, report.sample.redis.value)
    let parts = [
      ("kafka", kafka.map { self.kafka($0, report) }), ("redis", redis.map { self.redis($0, report) }),
      ("schedules", redis?.schedules?.value.map(schedules)), ("population", redis?.population?.value.map(population)),
    ]
    let objects = parts.compactMap { name, part in part.map { JSONValue.object([name: $0]) } }
    return (report.workers.map { worker($0, report) } + objects + [summary(report)]).map(\.text)
  }

  // MARK: Workers

  private static func worker(_ worker: Workers.Listing, _ report: StatusReport) -> JSONValue {
    let object = JSONValue.object([
      "worker": worker.name, "state": worker.standing.rawValue, "silentMs": worker.silentMilliseconds,
    ])
    guard let said = worker.report else { return object }
    return object.appending([
      "roles": said.roles, "version": said.version, "started": Timestamp.text(said.started), "admin": said.admin, "devices": said.devices,
      "lanes": said.lanes, "connections": said.connections, "partitions": said.partitions,
      "deliveryPartitions": report.partitions(of: worker),
      "lags": report.laneLags.filter { $0.worker == worker.name }.map(LagJSON.lag), "clockAheadMs": said.clockAhead,
      "conditions": conditions(worker),
    ])
  }

  private static func conditions(_ worker: Workers.Listing) -> [JSONValue] {
    (worker.report?.unready ?? []).map { condition in
      .object([
        "name": condition.name, "lane": condition.lane, "reason": condition.reason, "since": Timestamp.text(condition.since),
        "forMs": worker.age(of: condition),
      ])
    }
  }

  // MARK: Kafka and Redis

  private static func kafka(_ kafka: KafkaState, _ report: StatusReport) -> JSONValue {
    let lag = kafka.lag.value
    let topics = report.topics.all.compactMap { kafka.cluster.topics[$0] }.map { topic in
      let behind = lag?.topics.first { $0.topic == topic.name }
      return JSONValue.object([
        "topic": topic.name, "partitions": topic.partitions.count, "replication": topic.partitions.map(\.replicas).min() ?? 0,
        "differences": kafka.differences[topic.name], "records": behind?.records, "behindMs": behind?.behind,
      ])
    }
    return .object([
      "id": kafka.cluster.id, "brokers": kafka.cluster.brokers.sorted { $0.key < $1.key }.map(\.value), "group": report.group,
      "groupState": lag?.members?.state,
      "members": lag?.members?.members.map { LagJSON.member($0).appending(["partitions": $0.partitions.count]) }, "topics": topics,
      "stopped": kafka.applications.value?.compactMap(stopped), "limited": kafka.applications.value?.compactMap(limited),
    ])
  }

  private static func stopped(_ entry: ApplicationEntry) -> JSONValue? {
    entry.stops.open.map { stop in
      .object(["application": entry.application, "from": Timestamp.text(stop.from), "by": stop.by, "reason": stop.reason])
    }
  }

  private static func limited(_ entry: ApplicationEntry) -> JSONValue? {
    entry.stops.limits.last.map { .object(["application": entry.application]).appending(contentsOf: ApplicationPrinter.json($0)) }
  }

  private static func redis(_ redis: RedisState, _ report: StatusReport) -> JSONValue {
    let server = redis.server
    let identity = redis.identity.value ?? nil
    return .object([
      "address": server.address, "version": server.version, "role": server.isPrimary.map { $0 ? "primary" : "replica" },
      "replicas": server.replicas, "usedMemory": server.usedMemory, "maximumMemory": server.maximumMemory, "policy": server.policy,
      "evictedKeys": server.evictedKeys, "appendOnly": server.appendsWrites, "appendFsync": server.synchronization,
      "saved": server.isSaved, "kafka": identity?.kafka, "topicPrefix": identity?.topicPrefix,
      "layout": identity?.layouts?.upperBound, "oldestLayout": identity?.layouts?.lowerBound, "fanOutLanes": report.lanes?.count,
    ])
  }

  // MARK: Counts

  private static func population(_ found: PopulationEstimate) -> JSONValue {
    .object([
      "devices": estimate(found.devices), "connected": estimate(found.connected), "mailboxes": estimate(found.mailboxes),
      "notifications": estimate(found.notifications), "largest": found.largest.map(mailbox), "oldest": found.oldest.map(mailbox),
      "exact": found.isExact, "keysScanned": found.keysScanned, "devicesRead": found.devicesRead, "mailboxesRead": found.mailboxesRead,
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

  private static func estimate(_ estimate: Estimate) -> JSONValue {
    .object(["value": estimate.value, "margin95": estimate.margin, "exact": estimate.isExact])
  }

  private static func mailbox(_ seen: PopulationSurvey.SeenMailbox) -> JSONValue {
    .object(["device": seen.token, "notifications": seen.entries, "oldest": seen.oldest.map(Timestamp.text)])
  }

  // MARK: Problems

  private static func summary(_ report: StatusReport) -> JSONValue {
    .object([
      "time": Timestamp.text(report.sample.time), "topicPrefix": report.topics.prefix, "kafkaAnswers": report.sample.kafka.value != nil,
      "redisAnswers": report.sample.redis.value != nil,
      "workers": report.sample.redis.value?.workers.value.map { _ in report.workers.count }, "lanes": report.lanes?.count,
      "problems": report.problems.map(problem), "notes": report.notes.map(StatusWords.note),
    ])
  }

  private static func problem(_ problem: StatusProblem) -> JSONValue {
    func named(_ name: String, _ facts: JSONValue.Members = [:]) -> JSONValue {
      .object(["problem": name]).appending(facts).appending(["sentence": StatusWords.problem(problem)])
    }
    return switch problem {
    case .kafkaAway: named("kafka-away")
    case .redisAway: named("redis-away")
    case .topicMissing(let topic): named("topic-missing", ["topic": topic])
    case .topicDiffers(let topic, let differences): named("topic-differs", ["topic": topic, "differences": differences])
    case .leaderless(let topic, let partitions): named("without-leader", ["topic": topic, "partitions": partitions])
    case .replicasBehind(let topic, let partitions): named("replicas-behind", ["topic": topic, "partitions": partitions])
    case .unwritable(let fault): named("cannot-be-written", ["topic": fault.topic, "partitions": fault.partitions])
    case .lag(let problem): LagJSON.problem(problem)
    case .unreadable(let part, _): named("redis-unreadable", ["part": "\(part)"])
    case .redisUnsuitable: named("redis-unsuitable")
    case .evicted(let keys): named("redis-evicted", ["keys": keys])
    case .memoryShort(let used, let maximum): named("redis-memory", ["usedMemory": used, "maximumMemory": maximum])
    case .notSaved: named("redis-not-saved")
    case .otherCluster(let found, _): named("other-cluster", ["kafka": found.kafka, "topicPrefix": found.topicPrefix])
    case .unready(let worker): named("worker-not-ready", ["worker": worker.name, "conditions": conditions(worker)])
    case .clockDiffers(let name, let ahead): named("worker-clock", ["worker": name, "aheadMs": ahead])
    case .silent(let worker): named("worker-silent", ["worker": worker.name, "silentMs": worker.silentMilliseconds])
    case .noWorker(let role): named("no-worker", ["role": role])
    }
  }
}
