import EventLoop
import Kafka
import Operations
import Store
import Worker

/// `carillon replay`.
enum ReplayCommand {
  static let command = Command(
    "replay", "publishes requests of a range again",
    discussion:
      "Writes the selected requests of a range again, with their first places, and reports how many at most have an effect. The workers skip requests that were applied before, and judge those above their markers once more. So it does no harm, and restores what Redis has lost above its markers. --only-unfinished finds the losses below them, as audit does, and --as-new delivers everything again. After an interruption --resume continues exactly. The exit code is 1 then, and if nothing was found.",
    groups: [
      ReplayOptions.range, ReplayOptions.conditions, ReplayOptions.way, AnswerSettings.group, RequestSettings.group,
      ClusterSettings.group,
    ],
    examples: [
      Example("replay --from 1h --app com.example.shop --dry-run", "how much there is"),
      Example("replay --from 1d --only-unfinished --dry-run", "after a loss: what it has taken away"),
      Example("replay --offsets 3:1000-2000 --target user:ada", "some of one partition"),
      Example("replay --resume carillon-replay-5f0c9a1be2.json", "goes on after an interruption"),
    ]
  ) { values in
    do {
      return try await run(values)
    } catch let refusal as ReplayRefusal {
      throw Failure(.wrongUsage, refusal.sentence)
    }
  }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let kafka = try ClusterSettings.kafka(values, client: "carillon-replay")
    let (file, plan, isResumed) = try await begin(values, kafka)
    var settings = try await RunSettings(values, writingTo: [plan.topic], at: kafka)
    let behind = values[ReplayOptions.maximumBehind].wholeMilliseconds
    (settings.maximumBehind, settings.group) = (behind == 0 ? nil : Int64(behind), values[TransformOptions.group])
    let printer = printer(values, plan.selection)
    func end(_ report: RunReport) {
      // A file that the user has named stays.
      if report.isComplete, file?.path.hasSuffix(defaultFile(plan.run)) == true { file?.remove() }
      let isForecast = plan.selection.isForecast
      printer.end(
        report,
        ["run": plan.run, "asNew": plan.selection.isNew, "mayHaveEffect": isForecast ? Optional(report.counts.mayHaveEffect) : .none])
      if isForecast, report.counts.done > 0, !values[AnswerSettings.json] { forecast(report.counts) }
      if report.counts.done == 0, report.isComplete { StandardError.line("nothing was found: see the range and the conditions") }
    }
    if isResumed, plan.isComplete {
      end(plan.report)
      return .done
    }
    if let path = file?.path { StandardError.line("its progress is in \(path): after an interruption continue with --resume \(path)") }
    var store = plan.selection.isOfUnfinished ? try ClusterPlace(values, client: "carillon-replay").store : try store(values)
    store?.callDeadlineMilliseconds = redisMilliseconds
    var rules = RequestRules(values)
    rules.cluster = plan.cluster
    let wayOn = { file?.savedPath.map { "--resume \($0) continues" } }
    let report = try await RunCommand.run(kafka, rules, wayOn: wayOn) { [settings, store] tool, stop in
      try await tool.replay(
        plan, isResumed: isResumed, settings, stop, store: store, grace: Int64(values[ReplayOptions.grace].wholeMilliseconds),
        spillFolder: values.spillFolder(ReplayOptions.spill), save: { try file?.save($0) })
    } end: {
      end($0)
    }
    return report.isComplete && report.counts.done > 0 ? .done : .answerIsNo
  }

  /// A worker goes on with something else when Redis stands still. A replay would have to be begun again.
  private static let redisMilliseconds = 30_000

  /// The Redis that shows which requests were applied; nil if none is known, which does not stop a replay.
  private static func store(_ values: SettingValues) throws(UsageError) -> StoreConfiguration? {
    guard values[ClusterSettings.redis] != nil || values[ClusterSettings.kafka] == nil else { return nil }
    return try ClusterSettings.store(values)
  }

  private static func printer(_ values: SettingValues, _ selection: ReplaySelection) -> RunPrinter {
    RunPrinter(
      noun: "record", verb: selection.isNew ? "replayed as new requests" : "replayed", isJSON: values[AnswerSettings.json],
      isDryRun: values[RunCommand.isDryRun],
      others: [
        (.passedOver, "are not meant by the conditions"), (.ofReplays, "were written by a replay"),
        (.ofSchedules, "are due at a time or fired then: their schedules do not change"),
        (.tooLarge, "are too large for Kafka with the headers of a replay"),
        (.fromElsewhere, "have an origin that does not count, or a time more than five minutes ahead: the workers would reject them"),
        (.applied, "were applied before and have no effect"), (.expired, "have expired: they are not shown"),
        (.rejected, "break a rule: they are rejected again and become dead letters once more"),
      ])
  }

  /// Reports the effects, as far as they are known before the workers judge.
  private static func forecast(_ counts: RunCounts) {
    let possible = counts.mayHaveEffect
    StandardOutput.line(
      possible == 0
        ? "  so no device gets anything of them"
        : "  so at most \(possible) have an effect: the workers had not finished them, and judge them in their turn")
    if counts[.applied] > 0 { StandardError.line("--as-new delivers them again: it publishes them as new requests, with new ids") }
  }

  // MARK: The beginning

  /// Makes the file and the plan of a new replay, or opens those of an interrupted one.
  private static func begin(_ values: SettingValues, _ kafka: KafkaConfiguration) async throws -> (ReplayFile?, ReplayPlan, isResumed: Bool)
  {
    let (topic, cluster) = (ClusterSettings.topics(values).requests, values[ClusterSettings.name])
    guard let path = values[ReplayOptions.resume] else {
      let selection = try selection(values)
      // Before a file is made.
      if selection.isOfUnfinished { _ = try ClusterPlace(values, client: "carillon-replay") }
      let run = String(UInt64.random(in: 1...(.max)), radix: 16)
      let plan = try await asked(kafka) { admin in
        _ = try await admin.partitions(of: topic, at: kafka)
        return try await ReplayPlan(selection, of: topic, run: run, cluster: cluster, admin)
      }
      try await check(values, kafka, plan, isResumed: false)
      let path = values[ReplayOptions.state] ?? defaultFile(run)
      return (values[RunCommand.isDryRun] ? nil : try ReplayFile.make(path), plan, false)
    }
    try refuseWithResume(values)
    var (file, plan) = try ReplayFile.open(path)
    guard plan.cluster == cluster, plan.topic == topic else {
      throw Failure(
        .wrongUsage,
        "\(path) is of a replay of \(plan.topic) in the cluster \(plan.cluster), and not of this cluster's: give --topic-prefix and --cluster as then"
      )
    }
    let leftOut = try await asked(kafka) { try await plan.prepareToGoOn($0) }
    try await check(values, kafka, plan, isResumed: true)
    if leftOut > 0 { StandardError.line("\(TerminalText.count(leftOut, "record")) \(leftOut == 1 ? "is" : "are") gone and left out") }
    return (file, plan, true)
  }

  /// Checks that all settings are of one cluster, before the file is made or anything is written.
  private static func check(_ values: SettingValues, _ kafka: KafkaConfiguration, _ plan: ReplayPlan, isResumed: Bool) async throws {
    let store = plan.selection.isOfUnfinished ? try ClusterPlace(values, client: "carillon-replay").store : nil
    let asksGroup = store != nil || values[ReplayOptions.maximumBehind] != .zero && !values[RunCommand.isDryRun]
    func further(_ mismatch: ClusterMismatch) -> String? {
      switch mismatch {
      case .otherName: isResumed ? "begin a new replay with it; --resume keeps the name of the first run" : nil
      case .idleGroup: store == nil ? "or give --max-behind 0, which needs no group" : nil
      case .unusedRedis, .missingBuckets: nil
      }
    }
    try await ClusterTool.check(kafka, ClusterSettings.topics(values), further: further) { check in
      try await check.check(name: plan.cluster)
      if let store { try await check.check(redis: store) }
      if asksGroup { try await check.check(group: values[TransformOptions.group]) }
    }
  }

  private static func asked<R>(_ kafka: KafkaConfiguration, _ body: (Admin) async throws -> R) async throws -> R {
    do { return try await Admin.with(kafka, body) } catch let error as KafkaError { throw kafka.failure(error) }
  }

  private static func selection(_ values: SettingValues) throws(UsageError) -> ReplaySelection {
    var selection = ReplaySelection()
    selection.filter = ReplayOptions.filter(values)
    (selection.isOfUnfinished, selection.isNew) = (values[ReplayOptions.isOfUnfinished], values[RunCommand.isNew])
    if selection.isNew, selection.isOfUnfinished {
      throw UsageError(
        .contradiction, "--only-unfinished and --as-new exclude each other: what is unfinished is delivered with its own id")
    }
    selection.published = try TimeRange(values, from: ReplayOptions.from, to: ReplayOptions.to, now: WallClock.milliseconds())
    let partitions = values[ReplayOptions.partitions]
    if !partitions.isEmpty { selection.partitions = Set(partitions.map { Int32(clamping: $0) }) }
    var offsets: [Int32: Range<Int64>] = [:]
    for (partition, range) in values[ReplayOptions.offsets] {
      guard offsets.updateValue(range, forKey: partition) == nil else {
        throw UsageError(.contradiction, "--offsets names partition \(partition) twice: replay one range after the other")
      }
    }
    if !offsets.isEmpty { selection.offsets = offsets }
    return selection
  }

  private static func defaultFile(_ run: String) -> String { "carillon-replay-\(run).json" }

  /// Refuses flags that the file already answers.
  private static func refuseWithResume(_ values: SettingValues) throws(UsageError) {
    let given = Set(values.given.map(\.key))
    let ofFile = ReplayOptions.range.settings + ReplayOptions.conditions.settings + [RunCommand.isNew.declaration]
    let reasons =
      [
        (RunCommand.isDryRun.declaration, "--resume writes the rest, a dry run counts a whole range"),
        (ReplayOptions.state.declaration, "--resume names the file"),
      ] + ofFile.map { ($0, "the file has that setting") }
    for (setting, reason) in reasons where given.contains(setting.key) {
      throw UsageError(.contradiction, "--\(setting.flag) and --resume exclude each other: \(reason)")
    }
  }
}

extension ReplayRefusal {
  /// The refusal, and what to do.
  fileprivate var sentence: String {
    switch self {
    case .noPartition(let partition, let count): "\(partition.topic) has the partitions 0 to \(count - 1), and no \(partition.partition)"
    case .gone(let partition, let wanted, let oldest):
      "\(partition) begins at offset \(oldest), what lay before it is gone: "
        + (oldest < wanted.upperBound
          ? "--offsets \(partition.partition):\(oldest)-\(wanted.upperBound) is what is left of the range" : "nothing is left of the range")
    case .notYetThere(let partition, let wanted, let end):
      "\(partition) ends at offset \(end), before \(wanted.upperBound): ask for what is there"
    case .otherCluster: "the replay was begun at another Kafka cluster: give that one by --kafka"
    case .topicMadeAgain(let topic): "\(topic) was deleted and made again since the replay was begun: begin a new one"
    }
  }
}
