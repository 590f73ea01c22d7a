import JSON
import Kafka
import Notifications
import Operations
import Store
import Worker

/// A report for programs. It has objects for each worker, Kafka, Redis and the counts, then one for the problems.
enum StatusJSON {
  static func lines(_ report: StatusReport) -> [String] {
    var objects = report.workers.map { worker($0, report) }
    if let kafka = report.sample.kafka.value { objects.append([member("kafka", .object(self.kafka(kafka, report)))]) }
    if let redis = report.sample.redis.value {
      objects.append([member("redis", .object(self.redis(redis, report)))])
      if let schedules = redis.schedules?.value { objects.append([member("schedules", .object(self.schedules(schedules)))]) }
      if let population = redis.population?.value { objects.append([member("population", .object(self.population(population)))]) }
    }
    objects.append(summary(report))
    return objects.map { JSONValue.object($0).text }
  }

  // MARK: Workers

  private static func worker(_ worker: WorkerState, _ report: StatusReport) -> [JSONValue.Member] {
    var members = [member("worker", .string(worker.name.text))] + state(worker)
    guard let said = worker.report else { return members }
    members += [
      member("roles", strings(said.roles)), member("version", .string(said.version)),
      member("started", .string(Timestamp.text(said.started))),
      member("admin", text(said.admin)), member("devices", strings(said.devices)), member("lanes", .integer(Int64(said.lanes))),
      member("connections", integer(said.connections)), member("partitions", integer(said.partitions)),
      member("deliveryPartitions", numbers(report.partitions(of: worker))),
      member("lags", .array(report.laneLags.filter { $0.worker == worker.name }.map { .object(LagJSON.lag($0)) })),
      member("clockAheadMs", said.clockAhead.map { .integer($0) } ?? .null), member("conditions", .array(conditions(worker))),
    ]
    return members
  }

  private static func state(_ worker: WorkerState) -> [JSONValue.Member] {
    [member("state", .string(worker.standing.rawValue)), member("silentMs", .integer(worker.silentMilliseconds))]
  }

  private static func conditions(_ worker: WorkerState) -> [JSONValue] {
    (worker.report?.unready ?? []).map { condition in
      .object([
        member("name", .string(condition.name)), member("lane", text(condition.lane)), member("reason", .string(condition.reason)),
        member("since", .string(Timestamp.text(condition.since))), member("forMs", .integer(worker.age(of: condition))),
      ])
    }
  }

  // MARK: Kafka and Redis

  private static func kafka(_ kafka: KafkaState, _ report: StatusReport) -> [JSONValue.Member] {
    let lag = kafka.lag.value
    let members = lag?.members?.members.map { each in
      JSONValue.object([
        member("member", .string(each.id)), member("client", .string(each.client)), member("host", .string(each.host)),
        member("partitions", .integer(Int64(each.partitions.count))),
      ])
    }
    let topics = report.topics.all.compactMap { kafka.cluster.topics[$0] }.map { topic in
      let behind = lag?.topics.first { $0.topic == topic.name }
      return JSONValue.object([
        member("topic", .string(topic.name)), member("partitions", .integer(Int64(topic.partitions.count))),
        member("replication", .integer(Int64(topic.partitions.map(\.replicas).min() ?? 0))),
        member("differences", kafka.differences[topic.name].map { strings($0) } ?? .null),
        member("records", behind.map { .integer($0.records) } ?? .null), member("behindMs", behind.map { .integer($0.behind) } ?? .null),
      ])
    }
    return [
      member("id", text(kafka.cluster.id)), member("brokers", strings(kafka.cluster.brokers.sorted { $0.key < $1.key }.map(\.value))),
      member("group", .string(report.group)), member("groupState", text(lag?.members?.state)),
      member("members", members.map { .array($0) } ?? .null), member("topics", .array(topics)),
      member("stopped", kafka.applications.value.map { .array($0.compactMap(stopped)) } ?? .null),
      member("limited", kafka.applications.value.map { .array($0.compactMap(limited)) } ?? .null),
    ]
  }

  private static func stopped(_ entry: ApplicationLedger.Entry) -> JSONValue? {
    entry.stops.open.map { stop in
      .object([
        member("application", .string(entry.application.text)), member("from", .string(Timestamp.text(stop.from))),
        member("by", .string(stop.by)), member("reason", text(stop.reason)),
      ])
    }
  }

  private static func limited(_ entry: ApplicationLedger.Entry) -> JSONValue? {
    entry.stops.limits.last.map { limit in
      .object([member("application", .string(entry.application.text))] + ApplicationPrinter.members(limit))
    }
  }

  private static func redis(_ redis: RedisState, _ report: StatusReport) -> [JSONValue.Member] {
    let server = redis.server
    let identity = redis.identity.value ?? nil
    return [
      member("address", .string(server.address)), member("version", text(server.version)),
      member("role", text(server.isPrimary.map { $0 ? "primary" : "replica" })), member("replicas", integer(server.replicas)),
      member("usedMemory", server.usedMemory.map { .integer($0) } ?? .null),
      member("maximumMemory", server.maximumMemory.map { .integer($0) } ?? .null), member("policy", text(server.policy)),
      member("evictedKeys", server.evictedKeys.map { .integer($0) } ?? .null),
      member("appendOnly", server.appendsWrites.map { .bool($0) } ?? .null), member("appendFsync", text(server.synchronization)),
      member("saved", server.isSaved.map { .bool($0) } ?? .null), member("kafka", text(identity?.kafka)),
      member("topicPrefix", text(identity?.topicPrefix)), member("fanOutLanes", integer(report.lanes?.count)),
    ]
  }

  // MARK: Counts

  private static func population(_ found: PopulationEstimate) -> [JSONValue.Member] {
    [
      member("devices", estimate(found.devices)), member("connected", estimate(found.connected)),
      member("mailboxes", estimate(found.mailboxes)), member("notifications", estimate(found.notifications)),
      member("largest", .array(found.largest.map(mailbox))), member("oldest", .array(found.oldest.map(mailbox))),
      member("exact", .bool(found.isExact)), member("keysScanned", .integer(Int64(found.keysScanned))),
      member("devicesRead", .integer(Int64(found.devicesRead))), member("mailboxesRead", .integer(Int64(found.mailboxesRead))),
    ]
  }

  /// How many applications are listed.
  private static let listedHolders = 100

  private static func schedules(_ found: ScheduleHolders) -> [JSONValue.Member] {
    let holders = found.holders.prefix(listedHolders).map { holder in
      JSONValue.object([
        member("application", .string(holder.application.text)), member("pending", .integer(Int64(holder.pending))),
      ])
    }
    let fullest = found.fullest.map { place in
      JSONValue.object([
        member("bucket", .integer(Int64(place.bucket))), member("partition", .integer(Int64(place.partition))),
        member("pending", .integer(Int64(place.pending))),
      ])
    }
    return [
      member("pending", .integer(Int64(found.pending))), member("withoutDevices", .integer(Int64(found.withoutDevices))),
      member("applications", .array(holders)), member("fullest", fullest ?? .null),
    ]
  }

  private static func estimate(_ estimate: Estimate) -> JSONValue {
    .object([
      member("value", .integer(estimate.value)), member("margin95", .integer(estimate.margin)), member("exact", .bool(estimate.isExact)),
    ])
  }

  private static func mailbox(_ seen: PopulationSurvey.SeenMailbox) -> JSONValue {
    .object([
      member("device", .string(seen.token)), member("notifications", .integer(Int64(seen.entries))),
      member("oldest", text(seen.oldest.map { Timestamp.text($0) })),
    ])
  }

  // MARK: Problems

  private static func summary(_ report: StatusReport) -> [JSONValue.Member] {
    [
      member("time", .string(Timestamp.text(report.sample.time))), member("topicPrefix", .string(report.topics.prefix)),
      member("kafkaAnswers", .bool(report.sample.kafka.value != nil)), member("redisAnswers", .bool(report.sample.redis.value != nil)),
      member("workers", integer(report.sample.redis.value?.workers.value.map { _ in report.workers.count })),
      member("lanes", integer(report.lanes?.count)),
      member("problems", .array(report.problems.map { .object(problem($0)) })),
      member("notes", .array(report.notes.map { .string(StatusWords.note($0)) })),
    ]
  }

  private static func problem(_ problem: StatusProblem) -> [JSONValue.Member] {
    let sentence = member("sentence", .string(StatusWords.problem(problem)))
    func named(_ name: String, _ more: JSONValue.Member...) -> [JSONValue.Member] {
      [member("problem", .string(name))] + more + [sentence]
    }
    switch problem {
    case .kafkaAway: return named("kafka-away")
    case .redisAway: return named("redis-away")
    case .topicMissing(let topic): return named("topic-missing", member("topic", .string(topic)))
    case .topicDiffers(let topic, let differences):
      return named("topic-differs", member("topic", .string(topic)), member("differences", strings(differences)))
    case .leaderless(let topic, let partitions):
      return named("without-leader", member("topic", .string(topic)), member("partitions", numbers(partitions)))
    case .replicasBehind(let topic, let partitions):
      return named("replicas-behind", member("topic", .string(topic)), member("partitions", numbers(partitions)))
    case .unwritable(let fault):
      return named("cannot-be-written", member("topic", .string(fault.topic)), member("partitions", numbers(fault.partitions)))
    case .lag(let problem): return LagJSON.problem(problem)
    case .unreadable(let part, _): return named("redis-unreadable", member("part", .string(part.rawValue)))
    case .redisUnsuitable: return named("redis-unsuitable")
    case .evicted(let keys): return named("redis-evicted", member("keys", .integer(keys)))
    case .memoryShort(let used, let maximum):
      return named("redis-memory", member("usedMemory", .integer(used)), member("maximumMemory", .integer(maximum)))
    case .notSaved: return named("redis-not-saved")
    case .otherCluster(let found, _):
      return named("other-cluster", member("kafka", .string(found.kafka)), member("topicPrefix", .string(found.topicPrefix)))
    case .unready(let worker):
      return named("worker-not-ready", member("worker", .string(worker.name.text)), member("conditions", .array(conditions(worker))))
    case .clockDiffers(let name, let ahead):
      return named("worker-clock", member("worker", .string(name.text)), member("aheadMs", .integer(ahead)))
    case .silent(let worker):
      return named("worker-silent", member("worker", .string(worker.name.text)), member("silentMs", .integer(worker.silentMilliseconds)))
    case .noWorker(let role): return named("no-worker", member("role", .string(role)))
    }
  }

  private static func member(_ key: String, _ value: JSONValue) -> JSONValue.Member { .init(key: key, value: value) }
  private static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
  private static func integer(_ number: Int?) -> JSONValue { number.map { .integer(Int64($0)) } ?? .null }
  private static func strings(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }
  private static func numbers(_ numbers: [Int32]) -> JSONValue { .array(numbers.map { .integer(Int64($0)) }) }
}
