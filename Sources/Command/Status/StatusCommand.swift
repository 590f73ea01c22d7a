import EventLoop
import Kafka
import Operations
import Store
import Worker

/// `carillon status`.
enum StatusCommand {
  private static let watch = Setting(
    "status.watch", .boolean, default: false, "Looks again and again until it is ended: a terminal is redrawn, all else gets a new block.")
  private static let interval = Setting(
    "status.interval", .duration(.milliseconds(500)...(.seconds(3600))), default: .seconds(5),
    "With --watch: how long to wait between two looks.")
  private static let sample = Setting(
    "status.sample", .duration(.zero...(.seconds(600))), default: .seconds(2),
    "How long devices and mailboxes are counted in Redis, with 200 commands a second at most: some 90 devices with a mailbox each are counted exactly in two seconds, of more a sample is read, and the longer that takes the closer are its numbers. 0 leaves them out."
  )

  static let command = Command(
    "status", "shows how the cluster is: its workers, Kafka, Redis, devices and mailboxes, and what is wrong",
    discussion:
      "Each worker: whether it is ready, its lanes, partitions and connections, how long it has run, its version, and where it listens; of Kafka: its brokers, the consumer group with its members, and how far it is behind; of Redis: its memory, its settings, and how many devices and notifications it has, estimated from a sample where they are many. Then what is wrong: workers that are not ready, with the reasons, or that were killed; topics that are missing or set otherwise; topics that have their producers' time; a Redis that evicts, is full, or belongs to another cluster; and as notes the applications that are stopped, a Redis without maxmemory, and the like. The exit code is 1 when something is wrong, also where Kafka or Redis is away, of which the other is told all the same, and 3 when both are. With --json there is an object for each worker, for Kafka, Redis and what was counted, and the last one says what is wrong. The workers are those that report themselves to Redis: a killed one is told for five minutes.",
    groups: [
      SettingGroup("Status", [watch, interval, sample], advanced: [TransformOptions.group, FanOutOptions.silence]),
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
    let reader = try StatusReader(
      on: loop, place.kafka, place.topics, group: values[TransformOptions.group], place.store,
      sampleMilliseconds: values[sample].wholeMilliseconds)
    let screen = try await ReportScreen(isJSON: values[AnswerSettings.json], isWatching: values[watch], on: loop)
    var code = ExitCode.done
    repeat {
      let report = StatusReport(
        await reader.look(), place.topics, group: values[TransformOptions.group],
        laneLifetimeMilliseconds: values[FanOutOptions.silence].wholeMilliseconds, buckets: place.store.buckets, cluster: place.name)
      code = report.isAway ? .dependencyMissing : report.problems.isEmpty ? .done : .answerIsNo
      func show() {
        screen.show {
          StatusJSON.lines(report)
        } text: { width, _ in
          StatusPrinter(report, width: width).lines
        }
      }
      show()
      if values[watch] { await screen.wait(for: values[interval], redraw: show) }
    } while values[watch]
    await reader.close()
    await loop.close()
    return code
  }
}
