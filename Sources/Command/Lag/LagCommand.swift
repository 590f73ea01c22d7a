import EventLoop
import Kafka
import Operations
import Redis
import Store
import Worker

/// `carillon lag`.
enum LagCommand {
  private static let partitions = Setting(
    "lag.partitions", .boolean, default: false,
    "Shows each partition, and not only the worst one of each topic. With --watch a terminal shows as many as fit, the furthest behind first."
  )
  private static let interval = Setting(
    "lag.interval", .duration(.milliseconds(500)...(.seconds(3600))), default: .seconds(2),
    "How long rates are measured, and with --watch how long to wait between two reports.")
  private static let rates = Setting(
    "lag.rates", .boolean, default: true, "With --no-rates it answers at once, without rates and without the time to catch up.")

  static let command = Command(
    "lag", "shows how far the workers are behind, in records and in time",
    discussion:
      "For each topic that the transform workers read: the unfinished records, the age of the oldest (0 at the end), the records written and finished in a second, the time to catch up at this rate, and the partitions' owners. For deliveries, which have no committed offsets: the living fan-out lanes, their unread records and the age of the oldest, as their workers report it, and the partitions without a lane. For the other topics: the number of records, and the age of the newest. Then it lists problems: partitions without an owner, and unfinished records that were deleted, with their offsets. The exit code is 1 if there is a problem, and otherwise 3 if Redis was given and does not answer: then everything except the lanes is shown. With --json there is an object for each line, and the last one has the problems and the unknown facts. An embedded broker does not tell the owners of partitions.",
    groups: [
      SettingGroup("Lag", [partitions, ReportScreen.watch, interval, rates], advanced: [TransformOptions.group, FanOutOptions.silence]),
      AnswerSettings.group,
      SettingGroup(
        "Cluster", [ClusterSettings.kafka, ClusterSettings.redis],
        advanced: [ClusterSettings.topicPrefix] + ClusterSettings.redisFiles + [ClusterSettings.kafkaProperties]),
    ],
    examples: [
      Example("lag", "how far the workers are behind, and whether they catch up"),
      Example("lag --partitions --watch", "each partition, drawn again every two seconds"),
      Example("lag --kafka broker:9092 --redis redis:6379 --json --no-rates", "for a script, answered at once"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let store = try ClusterSettings.redisIfKnown(values, client: "carillon-lag").map { StoreConfiguration($0) }
    let kafka = try ClusterSettings.kafka(values, client: "carillon-lag")
    let topics = ClusterSettings.topics(values)
    let group = values[TransformOptions.group]
    // Before anything else is read, so that the error says what to type.
    try await Admin.with(kafka) { _ = try await $0.partitions(of: topics.requests, at: kafka) }
    let loop = EventLoop(name: "lag")
    let reader = try ClusterReader(on: loop, kafka, topics, group: group, store, timeoutMilliseconds: Admin.standardMilliseconds)
    var history = LagHistory(topics, group: group, laneLifetimeMilliseconds: values[FanOutOptions.silence].wholeMilliseconds)
    let screen = ReportScreen(values)
    let code: ExitCode
    do {
      code = try await screen.show(every: values[interval]) {
        do throws(KafkaError) {
          history.take(try await reader.sample())
          if !screen.isWatching, values[rates] {
            try? await Task.sleep(for: values[interval])
            history.take(try await reader.sample())
          }
        } catch {
          // Watching waits for a Kafka that is down for a while.
          guard screen.isWatching, history.report != nil, error.isRetriable else { throw error }
          StandardError.line("\(error)")
          return nil
        }
        return history.report.map { report in
          ReportScreen.Report(code: report.exitCode) {
            LagJSON.lines(report, showsPartitions: values[partitions])
          } text: {
            LagPrinter(report: report, width: $0).lines(showsPartitions: values[partitions], height: $1)
          }
        }
      }
    } catch {
      await reader.close()
      throw (error as? KafkaError).map { kafka.failure($0) } ?? error
    }
    await reader.close()
    await loop.close()
    return code
  }
}

extension LagReport {
  /// The exit code.
  var exitCode: ExitCode {
    if !problems.isEmpty { return .answerIsNo }
    return gaps.contains { if case .redisAway = $0 { true } else { false } } ? .dependencyMissing : .done
  }
}
