import EventLoop
import Kafka
import Notifications
import Operations
import Store
import Worker

/// `carillon replay`.
enum ReplayCommand {
  static let command = Command(
    "replay", "publishes requests of a range again, or copies events",
    discussion:
      "Writes the selected requests of a range again, with their first places, and reports how many at most have an effect. The workers skip requests that were applied before, and judge those above their markers once more. So it does no harm, and restores what Redis has lost above its markers. --only-unfinished finds the losses below them, as audit does, and --as-new delivers everything again. --topic events copies events. After an interruption --resume continues exactly. The exit code is 1 then, and if nothing was found.",
    groups: [
      ReplayOptions.range, ReplayOptions.conditions, ReplayOptions.way, AnswerSettings.group, RequestSettings.group,
      ClusterSettings.group,
    ],
    examples: [
      Example("replay --from 1h --app com.example.shop --dry-run", "how much there is"),
      Example("replay --from 1d --only-unfinished --dry-run", "after a loss: what it has taken away"),
      Example("replay --offsets 3:1000-2000 --where /order/id=7", "some of one partition"),
      Example("replay --resume carillon-replay-5f0c9a1be2.json", "goes on after an interruption"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    if let refusal = values[ReplayOptions.topic].refusal {
      throw UsageError(.contradiction, "--topic \(values[ReplayOptions.topic].rawValue) is not replayed: \(refusal)")
    }
    let kafka = try ClusterSettings.kafka(values, client: "carillon-replay")
    var settings = ReplaySettings(values)
    let printer = ReplayPrinter(isJSON: values[AnswerSettings.json], isDryRun: settings.isDryRun)
    let (file, plan, isResumed) = try await begin(values, kafka)
    if isResumed, plan.isComplete {
      if file?.isUnnamed(plan) == true { file?.remove() }
      printer.ends(plan, isComplete: true)
      return .done
    }
    settings.limits = try await Admin.with(kafka) { try await $0.writeLimits(of: [plan.destination], at: kafka) }
    printer.begins(plan, file: file?.path)
    let loop = EventLoop(name: "replay")
    let signals = StopSignals(on: loop)
    try await signals.watch()
    var store = plan.isOfUnfinished ? try ClusterPlace(values, client: "carillon-replay").store : try store(values)
    store?.callDeadlineMilliseconds = redisMilliseconds
    let replayer = Replayer(
      on: loop, kafka, RequestRules(values), settings, store: store, save: { try file?.save($0) }, onNews: { printer.tell($0) })
    let stopping = Task {
      _ = await signals.ending()
      await replayer.stop()
    }
    defer { stopping.cancel() }
    let ending: ReplayEnding
    do { ending = try await replayer.replay(plan, isResumed: isResumed) } catch {
      throw failure(error, plan, kafka, file?.savedPath)
    }
    switch ending {
    case .complete(let plan):
      // A file that the user has named stays.
      if file?.isUnnamed(plan) == true { file?.remove() }
      printer.ends(plan, isComplete: true)
      if plan.progress.total == 0 { await sayWhatThereIs(of: plan.topic, replayer) }
      return plan.counts[.written] > 0 ? .done : .answerIsNo
    case .stopped(let plan):
      printer.ends(plan, isComplete: false)
      if let path = file?.savedPath { StandardError.line("interrupted: continue with --resume \(path)") }
      return .answerIsNo
    case .failed(let error, let plan):
      printer.ends(plan, isComplete: false)
      throw failure(error, plan, kafka, file?.savedPath)
    }
  }

  /// A worker goes on with something else when Redis stands still. A replay would have to be begun again.
  private static let redisMilliseconds = 30_000

  /// The Redis that shows which requests were applied; nil if none is known, which does not stop a replay.
  private static func store(_ values: SettingValues) throws(UsageError) -> StoreConfiguration? {
    guard values[ClusterSettings.redis] != nil || values[ClusterSettings.kafka] == nil else { return nil }
    return try ClusterSettings.store(values)
  }

  /// The error that ended a replay, with what to type next.
  private static func failure(_ error: any Error, _ plan: ReplayPlan, _ kafka: KafkaConfiguration, _ path: String?) -> any Error {
    let wayOn = path.map { "--resume \($0) continues" } ?? "try again"
    switch error {
    case let error as KafkaError where error.code == .offsetsGone || error.code == .logTruncated:
      let rest = path.map { "--resume \($0) --skip-gone continues after it" } ?? "try again"
      return Failure(.dependencyMissing, "what is to be replayed of \(plan.topic) was deleted meanwhile (\(error.operation)): \(rest)")
    case let error as KafkaError: return kafka.failure(error, midway: wayOn)
    case let refusal as ReplayRefusal: return Failure(.wrongUsage, refusal.sentence(resuming: path))
    default:
      if let path { StandardError.line("interrupted: continue with --resume \(path)") }
      return error
    }
  }

  /// Says what a topic has, if the range has no record.
  private static func sayWhatThereIs(of topic: String, _ replayer: Replayer) async {
    guard let span = try? await replayer.span(of: topic) else { return }
    guard let times = span.times else { return StandardError.line("\(topic) holds no records") }
    StandardError.line(
      "no record lies in that range: \(topic) holds \(span.count), published from \(Timestamp.text(times.lowerBound)) to \(Timestamp.text(times.upperBound))"
    )
  }

  /// Makes the file and the plan of a new replay, or opens those of an interrupted one.
  private static func begin(_ values: SettingValues, _ kafka: KafkaConfiguration) async throws -> (ReplayFile?, ReplayPlan, isResumed: Bool)
  {
    if let path = values[ReplayOptions.resume] {
      try refuseWithResume(values)
      var (file, plan) = try ReplayFile.open(path)
      let topics = ClusterSettings.topics(values)
      let isOfRequests = plan.topic == topics.requests && plan.destination == topics.requests
      let isOfEvents = plan.topic == topics.events && !topics.all.contains(plan.destination) && !plan.isOfUnfinished
      guard plan.cluster == values[ClusterSettings.name], isOfRequests || isOfEvents else {
        throw Failure(
          .wrongUsage,
          "\(path) is of a replay of \(plan.topic) into \(plan.destination) in the cluster \(plan.cluster), and not of this cluster's: give --topic-prefix and --cluster as then"
        )
      }
      let leftOut = try await asked(kafka, resuming: path) { admin in
        try await plan.prepareToGoOn(admin, skipsGone: values[ReplayOptions.skipsGone])
      }
      try await check(values, kafka, plan, isResumed: true)
      if leftOut > 0 { StandardError.line("\(TerminalText.count(leftOut, "record")) \(leftOut == 1 ? "is" : "are") gone and left out") }
      return (file, plan, true)
    }
    let selection = try selection(values)
    // Before a file is made.
    if selection.isOfUnfinished { _ = try ClusterPlace(values, client: "carillon-replay") }
    let run = String(UInt64.random(in: 1...(.max)), radix: 16)
    let plan = try await asked(kafka) { admin in
      try await ReplayPlan(selection, run: run, cluster: values[ClusterSettings.name], admin)
    }
    try await check(values, kafka, plan, isResumed: false)
    let path = values[ReplayOptions.state] ?? defaultFile(run)
    return (values[ReplayOptions.isDryRun] ? nil : try ReplayFile.make(path), plan, false)
  }

  /// Checks that all settings are of one cluster, before the file is made or anything is written.
  private static func check(_ values: SettingValues, _ kafka: KafkaConfiguration, _ plan: ReplayPlan, isResumed: Bool) async throws {
    // Events are copied unchanged, whatever cluster they are of.
    guard plan.isOfRequests else { return }
    let settings = ReplaySettings(values)
    let store = plan.isOfUnfinished ? try ClusterPlace(values, client: "carillon-replay").store : nil
    let asksGroup = store != nil || settings.maximumBehind != nil && !settings.isDryRun
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
      if asksGroup { try await check.check(group: settings.group) }
    }
  }

  /// - Parameter path: the file of the replay that continues.
  private static func asked<R>(_ kafka: KafkaConfiguration, resuming path: String? = nil, _ body: (Admin) async throws -> R) async throws
    -> R
  {
    do {
      return try await Admin.with(kafka, body)
    } catch let refusal as ReplayRefusal {
      throw Failure(refusal.isOfDestination ? .dependencyMissing : .wrongUsage, refusal.sentence(resuming: path))
    } catch let error as KafkaError {
      if error.code == .unknownTopicOrPartition {
        throw Failure(.dependencyMissing, "\(error.operation) at \(kafka.servers): there is no such topic; is --topic-prefix right?")
      }
      throw kafka.failure(error)
    }
  }

  private static func selection(_ values: SettingValues) throws(UsageError) -> ReplaySelection {
    let topics = ClusterSettings.topics(values)
    let isOfEvents = values[ReplayOptions.topic] == .events
    let source = isOfEvents ? topics.events : topics.requests
    var selection = ReplaySelection(topic: source, destination: values[ReplayOptions.into] ?? source)
    if isOfEvents {
      guard selection.destination != source, !topics.all.contains(selection.destination) else {
        throw UsageError(
          .contradiction, "events are copied into a topic of another name: give --into TOPIC, which is none of the cluster's own")
      }
    } else if values[ReplayOptions.into] != nil {
      throw UsageError(.contradiction, "requests go back into \(source) alone: --into is for --topic events")
    }
    selection.filter = try ReplayOptions.filter(values)
    selection.isOfUnfinished = values[ReplayOptions.isOfUnfinished]
    selection.isNew = values[ReplayOptions.isNew]
    if isOfEvents, selection.isNew {
      throw UsageError(.contradiction, "--as-new makes requests of their own: events are copied as they are")
    }
    if selection.isNew, selection.isOfUnfinished {
      throw UsageError(
        .contradiction, "--only-unfinished and --as-new exclude each other: what is unfinished is delivered with its own id")
    }
    if isOfEvents, let condition = selection.isOfUnfinished ? "--only-unfinished" : selection.filter.conditions.first {
      throw UsageError(.contradiction, "\(condition) is a condition on requests: events are copied as they are")
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
    let ofFile = ReplayOptions.range.settings + ReplayOptions.conditions.settings + [ReplayOptions.isNew.declaration]
    let reasons =
      [
        (ReplayOptions.isDryRun.declaration, "--resume writes the rest, a dry run counts a whole range"),
        (ReplayOptions.state.declaration, "--resume names the file"),
      ] + ofFile.map { ($0, "the file has that setting") }
    for (setting, reason) in reasons where given.contains(setting.key) {
      throw UsageError(.contradiction, "--\(setting.flag) and --resume exclude each other: \(reason)")
    }
  }
}

extension ReplaySettings {
  fileprivate init(_ values: SettingValues) {
    self.init()
    let (records, bytes) = (values[ReplayOptions.records], values[ReplayOptions.bytes])
    recordsPerSecond = records == 0 ? nil : records
    bytesPerSecond = bytes == 0 ? nil : bytes
    let behind = values[ReplayOptions.maximumBehind].wholeMilliseconds
    maximumBehind = behind == 0 ? nil : Int64(behind)
    group = values[TransformOptions.group]
    isDryRun = values[ReplayOptions.isDryRun]
    grace = Int64(values[ReplayOptions.grace].wholeMilliseconds)
    spillFolder = values.spillFolder(ReplayOptions.spill)
  }
}

extension ReplayFile {
  /// Whether the replay has chosen its name. Then it is removed at the end.
  fileprivate func isUnnamed(_ plan: ReplayPlan) -> Bool { path.hasSuffix("carillon-replay-\(plan.run).json") }
}

extension ReplayRefusal {
  /// Whether the destination is missing.
  fileprivate var isOfDestination: Bool { if case .noDestination = self { true } else { false } }

  /// The refusal, and what to do.
  ///
  /// - Parameter path: the file of the replay that continues; nil for a new one.
  fileprivate func sentence(resuming path: String?) -> String {
    switch self {
    case .noPartition(let partition, let count): "\(partition.topic) has the partitions 0 to \(count - 1), and no \(partition.partition)"
    case .gone(let partition, let wanted, let oldest):
      if let path {
        "\(partition) begins at offset \(oldest) by now, and what is left begins at \(wanted.lowerBound): --resume \(path) --skip-gone leaves out what is gone"
      } else if oldest < wanted.upperBound {
        "\(partition) begins at offset \(oldest), what lay before it is gone: --offsets \(partition.partition):\(oldest)-\(wanted.upperBound) is what is left of the range"
      } else {
        "\(partition) begins at offset \(oldest), what lay before it is gone: nothing is left of \(wanted.lowerBound) to \(wanted.upperBound)"
      }
    case .notYetThere(let partition, let wanted, let end):
      "\(partition) ends at offset \(end), before \(wanted.upperBound): ask for what is there"
    case .otherCluster: "the replay was begun at another Kafka cluster: give that one by --kafka"
    case .topicMadeAgain(let topic): "\(topic) was deleted and made again since the replay was begun: begin a new one"
    case .noDestination(let topic):
      "there is no topic \(topic) to write into: "
        + (path == nil ? "make it, or name another one by --into" : "begin a new replay, into another one")
    case .tooFewPartitions(let topic, let count, let needed):
      "\(topic) has \(count) of the \(TerminalText.count(needed, "partition")) that it needs, for each record goes into the one of the same number: give it more, or name another topic by --into"
    }
  }
}
