import EventLoop
import JSON
import Kafka
import Notifications
import Operations
import Synchronization
import Worker

/// `carillon dead-letters redrive` and `carillon dead-letters discard`.
enum RedriveCommand {
  private typealias Settings = DeadLetterSettings

  static let redrive = Command(
    "dead-letters redrive", "publishes dead letters again, when their cause is fixed",
    discussion:
      "Writes each letter to the requests again, into its former partition, with its first place in carillon-origin. So it keeps its old revision and id, and nothing is shown twice. --set and --unset correct its headers. A letter that would be rejected again is left and reported, so give the limits of the cluster. A payload that did not fit into the letter is read from its source. A letter that crashed workers needs --force and a call of its own. The result is noted in the dead letters, and such letters are skipped later. After an interruption the same command continues. With --json each letter is an object, and the last one has the counts. The exit code is 1 if a letter was left, or none was selected.",
    arguments: [Settings.letters],
    groups: [
      Settings.filter,
      SettingGroup(
        "Redrive", [RunCommand.isDryRun, RunCommand.records, Settings.sets, Settings.unsets, Settings.wait, Settings.everything],
        advanced: [RunCommand.isNew, Settings.again, Settings.force, Settings.note]),
      AnswerSettings.group, RequestSettings.group, cluster,
    ],
    examples: [
      Example("dead-letters redrive --reason BadTopic --app com.example.shop --dry-run", "what would be done"),
      Example("dead-letters redrive --reason MissingTopic --set apns-topic=com.example.shop --wait 1m", "mends and follows them"),
      Example("dead-letters redrive 3:1742 --force", "one over which workers ended"),
    ]
  ) { values in
    let edits = try Settings.edits(values)
    if values[Settings.force], values[Settings.letters].count != 1 {
      throw UsageError(.contradiction, "--force goes with one LETTER: what ended workers is redriven alone")
    }
    if edits.assigned.contains(where: { RequestHeader.named($0.name) == .id }), values[Settings.letters].count != 1 {
      throw UsageError(.contradiction, "--set apns-id goes with one LETTER: it is one request's")
    }
    var rules = RequestRules(values)
    rules.cluster = values[ClusterSettings.name]
    return try await run(values, edits, rules, isForced: values[Settings.force])
  }

  static let discard = Command(
    "dead-letters discard", "notes that dead letters need no action",
    discussion:
      "The letters stay in their topic. A note beside them says who discarded them and when, and redrive skips them. With --json each letter is an object, and the last one has the counts. The exit code is 1 if none was selected.",
    arguments: [Settings.letters],
    groups: [
      Settings.filter,
      SettingGroup(
        "Discard", [RunCommand.isDryRun, Settings.note, Settings.everything], advanced: [Settings.again, RunCommand.records]),
      AnswerSettings.group, ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("dead-letters discard 3:1742 --note 'a test'", "one letter"),
      Example("dead-letters discard --reason BadTopic --to 30d", "what nobody wants any more"),
    ]
  ) { values in try await run(values, nil, RequestRules(topics: ClusterSettings.topics(values)), isForced: false) }

  /// Origins contain the cluster's name.
  private static let cluster = SettingGroup(
    "Cluster", [ClusterSettings.kafka],
    advanced: [ClusterSettings.topicPrefix, ClusterSettings.name, ClusterSettings.kafkaProperties])

  /// - Parameter edits: the changes of redriven letters; nil to discard them.
  private static func run(
    _ values: SettingValues, _ edits: RequestEdits?, _ rules: RequestRules, isForced: Bool
  ) async throws -> ExitCode {
    let filter = try Settings.filter(values, now: WallClock.milliseconds())
    guard !filter.isEverything || values[Settings.everything] else {
      throw UsageError(.missing, "which letters? give some, or a filter such as --reason, or --everything")
    }
    let kafka = try ClusterSettings.kafka(values, client: "carillon-dead-letters")
    let topics = rules.topics
    _ = try await Admin.with(kafka) { try await $0.partitions(of: topics.deadLetters, at: kafka) }
    if let edits, !edits.isNew {
      try await ClusterTool.check(kafka, topics) { try await $0.check(name: values[ClusterSettings.name]) }
    }
    var order = LetterOrder(edits, filter, by: Machine.person, cluster: rules.cluster ?? ClusterSettings.defaultName)
    (order.isAgain, order.isForced, order.note) = (values[Settings.again], isForced, values[Settings.note])
    let settings = try await RunSettings(values, writingTo: [topics.requests, topics.deadLetters], at: kafka)
    // The person must know what was redriven, even if nobody reads the output.
    if !settings.isDryRun { StandardOutput.whenItFails(.useStandardError) }
    let isJSON = values[AnswerSettings.json]
    let letters = LetterResultPrinter(isDryRun: settings.isDryRun, devicesTopic: topics.devices)
    let wayOn = settings.isDryRun ? nil : "the same command continues"
    let waits = edits == nil || settings.isDryRun ? nil : values[Settings.wait]
    let areAllKnown = Mutex(true)
    let report = try await RunCommand.run(kafka, rules, wayOn: { wayOn }) { [order] tool, stop in
      let redriven = Mutex([(id: String, partition: Int32, offset: Int64)]())
      let outcomes: PublishedOutcomes? =
        if let waits { try await PublishedOutcomes(tool, kafka, for: waits, waitsForAbsent: false, isJSON: isJSON) } else { nil }
      let report = try await tool.carryOut(order, settings, stop) { result in
        if isJSON { StandardOutput.json(letters.json(result).text) } else { StandardOutput.line(letters.line(result)) }
        guard case .redriven(let place?, _) = result.kind else { return }
        // A request without an apns-id of its own has one that follows from its place.
        let id = result.id?.description ?? result.letter.place.description
        redriven.withLock { if $0.count < ClusterTool.maximumFollowed { $0.append((id, place.partition, place.offset)) } }
      }
      if let outcomes, report.isComplete {
        StandardOutput.flush()
        let isGood = try await outcomes.print(redriven.withLock { $0 }, of: report.counts.done) { stop.isSet }
        areAllKnown.withLock { $0 = isGood }
      }
      return report
    } end: {
      let isNothing = $0.counts.read == $0.counts[.passedOver]
      if isJSON || !isNothing { printer(isDiscard: edits == nil, isJSON: isJSON, isDryRun: settings.isDryRun).end($0) }
      if isNothing, $0.isComplete { DeadLetterCommands.say(nothing: filter, of: $0.counts.read) }
    }
    let counts = report.counts
    let isBad =
      counts.read == counts[.passedOver] || counts[.left] + counts[.gone] > 0 || !report.isComplete
      || !areAllKnown.withLock { $0 }
    return isBad ? .answerIsNo : .done
  }

  private static func printer(isDiscard: Bool, isJSON: Bool, isDryRun: Bool) -> RunPrinter {
    RunPrinter(
      noun: "letter", verb: isDiscard ? "discarded" : "redriven", isJSON: isJSON, isDryRun: isDryRun,
      done: isDiscard ? .discarded : .written,
      others: [
        (.passedOver, "are not selected"), (.handled, "were redriven or discarded before: --again takes them once more"),
        (.gone, "are gone: their payload did not fit into the letter, and their source does not have it any more"),
        (.left, "\(isDryRun ? "would be" : "were") left as they are: see above"), (.expired, "have expired: they are not shown"),
      ])
  }
}
