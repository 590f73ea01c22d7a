import EventLoop
import Kafka
import Operations
import Store
import Worker

/// `carillon status`, and `carillon lag`, which shows a part of the same report.
enum StatusCommand {
  private static let sample = Setting(
    "status.sample", .duration(.zero...(.seconds(600))), default: .seconds(2),
    "How long devices and mailboxes are counted in Redis, some 10,000 keys a second. Of more keys a part is counted and scaled up. 0 leaves out these and schedules."
  )
  private static let partitions = Setting(
    "lag.partitions", .boolean, default: false,
    "Shows each partition. With --watch on a terminal the one that is furthest behind comes first.")
  private static let rates = Setting(
    "lag.rates", .boolean, default: true, "With --no-rates it answers at once, without rates and without the time to catch up.")

  static let command = Command(
    "status", "shows the state of the cluster: workers, Kafka, Redis, devices, mailboxes, and problems",
    discussion:
      "Shows for each worker whether it is ready, its lanes, partitions and connections, its uptime, its version, and its address. Of Kafka it shows the brokers, the consumer group, and how far each topic is read; of Redis the memory, the settings, and the numbers of devices and notifications, which are estimated if there are many. Then it lists problems: workers that are not ready, with the reasons, or that were killed; missing topics, or topics with other settings; partitions that nobody reads, and unfinished records that were deleted; topics that have their producers' time; a Redis that evicts, is full, or belongs to another cluster. Stopped applications and those with a rate limit, a Redis without maxmemory, and the like are notes. The exit code is 1 if there is a problem. It is also 1 if Kafka or Redis does not answer, while the other is still shown, and 3 if both do not. With --json there is an object for each worker and each topic, for Kafka, Redis and the counts, and the last one has the problems. Workers report themselves to Redis: a killed one is shown for five minutes.",
    groups: [
      SettingGroup(
        "Status", [ReportScreen.watch, ReportScreen.interval, sample], advanced: [TransformOptions.group, FanOutOptions.silence]),
      AnswerSettings.group, ClusterSettings.group,
    ],
    examples: [
      Example("status", "how the cluster is"),
      Example("status --watch", "the same, drawn again every two seconds"),
      Example("status --kafka broker:9092 --redis redis:6379 --json --sample 0s", "for a script, without counting devices"),
    ]
  ) { try await run($0, .all, countMilliseconds: $0[sample].wholeMilliseconds) }

  static let lag = Command(
    "lag", "shows how far the workers are behind, in records and in time",
    discussion:
      "For each topic: the records in its log, the age of the newest, and the records written in a second. For those that the transform workers read also the unfinished records, the age of the oldest (0 at the end), the records finished in a second, the time to catch up at this rate, and the partitions' owners. For deliveries, which have no committed offsets: the records that fan-out lanes have not taken, as their workers report it. The problems and notes are those of 'carillon status', but for those of applications. The exit code is 1 if there is a problem, and 3 if Kafka cannot be read. Without --redis nothing is known of fan-out lanes. With --json there is an object for each line, and the last one has the problems. An embedded broker does not tell the owners of partitions.",
    groups: [
      SettingGroup(
        "Lag", [partitions, ReportScreen.watch, ReportScreen.interval, rates], advanced: [TransformOptions.group, FanOutOptions.silence]),
      AnswerSettings.group, ClusterSettings.group,
    ],
    examples: [
      Example("lag", "how far the workers are behind, and whether they catch up"),
      Example("lag --partitions --watch", "each partition, drawn again every two seconds"),
      Example("lag --kafka broker:9092 --redis redis:6379 --json --no-rates", "for a script, answered at once"),
    ]
  ) { values in
    // Before anything else is read, so that the error says what to type.
    let kafka = try ClusterSettings.kafka(values, client: "carillon-lag")
    let requests = ClusterSettings.topics(values).requests
    try await Admin.with(kafka) { _ = try await $0.partitions(of: requests, at: kafka) }
    return try await run(values, values[partitions] ? .partitions : .topics, kafkaMilliseconds: 20_000, measuresRates: values[rates])
  }

  private static func run(
    _ values: SettingValues, _ view: StatusPrinter.View, countMilliseconds: Int = 0, kafkaMilliseconds: Int = 8_000,
    measuresRates: Bool = false
  ) async throws -> ExitCode {
    let client = "carillon-\(view == .all ? "status" : "lag")"
    let redis =
      if view == .all { try ClusterSettings.kafkaAndRedis(values, client: client).1 } else {
        try ClusterSettings.redisIfKnown(values, client: client)
      }
    let cluster = ReportedCluster(
      ClusterSettings.topics(values), group: values[TransformOptions.group],
      laneLifetimeMilliseconds: values[FanOutOptions.silence].wholeMilliseconds, buckets: values[ClusterSettings.buckets],
      name: values[ClusterSettings.name])
    let loop = EventLoop(name: view == .all ? "status" : "lag")
    let reader = try ClusterReader(
      on: loop, try ClusterSettings.kafka(values, client: client), cluster.topics, group: cluster.group,
      redis.map { StoreConfiguration($0, buckets: cluster.buckets) }, countMilliseconds: countMilliseconds,
      readsApplications: view == .all, kafkaMilliseconds: kafkaMilliseconds)
    var history = ClusterHistory(cluster)
    let screen = ReportScreen(values)
    let code = try await screen.show(every: values[ReportScreen.interval]) {
      var report = history.report(await reader.look())
      if measuresRates, !screen.isWatching {
        try? await Task.sleep(for: values[ReportScreen.interval])
        report = history.report(await reader.look())
      }
      return ReportScreen.Report(code: report.isAway ? .dependencyMissing : report.problems.isEmpty ? .done : .answerIsNo) { [report] in
        StatusJSON.lines(report, view)
      } text: { [report] width, height in
        StatusPrinter(report: report, width: width).lines(view, height: height)
      }
    }
    await reader.close()
    await loop.close()
    return code
  }
}
