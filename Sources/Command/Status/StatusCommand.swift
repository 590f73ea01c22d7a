import EventLoop
import Kafka
import Operations
import Store
import Worker

/// `carillon status`.
enum StatusCommand {
  private static let interval = Setting(
    "status.interval", .duration(.milliseconds(500)...(.seconds(3600))), default: .seconds(5),
    "With --watch: how long to wait between two reports.")
  private static let sample = Setting(
    "status.sample", .duration(.zero...(.seconds(600))), default: .seconds(2),
    "How long devices and mailboxes are counted in Redis, with at most 200 commands a second. Some 90 devices with a mailbox each are counted exactly in two seconds. Of more a sample is read, which is more precise with more time. 0 leaves them out."
  )

  static let command = Command(
    "status", "shows the state of the cluster: workers, Kafka, Redis, devices, mailboxes, and problems",
    discussion:
      "Shows for each worker whether it is ready, its lanes, partitions and connections, its uptime, its version, and its address. Of Kafka it shows the brokers, the consumer group with its members, and its lag; of Redis the memory, the settings, and the numbers of devices and notifications, which are estimated from a sample if there are many. Then it lists problems: workers that are not ready, with the reasons, or that were killed; missing topics, or topics with other settings; topics that have their producers' time; a Redis that evicts, is full, or belongs to another cluster. Stopped applications and those with a rate limit, a Redis without maxmemory, and the like are notes. The exit code is 1 if there is a problem. It is also 1 if Kafka or Redis does not answer, while the other is still shown, and 3 if both do not. With --json there is an object for each worker, for Kafka, Redis and the counts, and the last one has the problems. Workers report themselves to Redis: a killed one is shown for five minutes.",
    groups: [
      SettingGroup("Status", [ReportScreen.watch, interval, sample], advanced: [TransformOptions.group, FanOutOptions.silence]),
      AnswerSettings.group, ClusterSettings.group,
    ],
    examples: [
      Example("status", "how the cluster is"),
      Example("status --watch", "the same, drawn again every five seconds"),
      Example("status --kafka broker:9092 --redis redis:6379 --json --sample 0s", "for a script, without counting devices"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let place = try ClusterPlace(values, client: "carillon-status")
    let loop = EventLoop(name: "status")
    let reader = try ClusterReader(
      on: loop, place.kafka, place.topics, group: values[TransformOptions.group], place.store,
      sampleMilliseconds: values[sample].wholeMilliseconds)
    let code = try await ReportScreen(values).show(every: values[interval]) {
      let report = StatusReport(
        await reader.look(), place.topics, group: values[TransformOptions.group],
        laneLifetimeMilliseconds: values[FanOutOptions.silence].wholeMilliseconds, buckets: place.store.buckets, cluster: place.name)
      return ReportScreen.Report(code: report.exitCode) {
        StatusJSON.lines(report)
      } text: { width, _ in
        StatusPrinter(report: report, width: width).lines
      }
    }
    await reader.close()
    await loop.close()
    return code
  }
}

extension StatusReport {
  /// The exit code.
  fileprivate var exitCode: ExitCode { isAway ? .dependencyMissing : problems.isEmpty ? .done : .answerIsNo }
}
