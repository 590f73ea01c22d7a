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
        "Redrive", [Settings.dryRun, Settings.sets, Settings.unsets, Settings.wait, Settings.everything],
        advanced: [Settings.asNew, Settings.again, Settings.force, Settings.unchecked, Settings.note]),
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
    return try await run(values, .redrive(edits)) { order in
      order.isUnchecked = values[Settings.unchecked]
      order.isForced = values[Settings.force]
    }
  }

  static let discard = Command(
    "dead-letters discard", "notes that dead letters need no action",
    discussion:
      "The letters stay in their topic. A note beside them says who discarded them and when, and redrive skips them. With --json each letter is an object, and the last one has the counts. The exit code is 1 if none was selected.",
    arguments: [Settings.letters],
    groups: [
      Settings.filter,
      SettingGroup("Discard", [Settings.discardsDryRun, Settings.note, Settings.everything], advanced: [Settings.again]),
      AnswerSettings.group, ClusterSettings.kafkaGroup,
    ],
    examples: [
      Example("dead-letters discard 3:1742 --note 'a test'", "one letter"),
      Example("dead-letters discard --reason BadTopic --to 30d", "what nobody wants any more"),
    ]
  ) { values in try await run(values, .discard) { _ in } }

  /// Origins contain the cluster's name.
  private static let cluster = SettingGroup(
    "Cluster", [ClusterSettings.kafka],
    advanced: [ClusterSettings.topicPrefix, ClusterSettings.name, ClusterSettings.kafkaProperties])

  private static func run(_ values: SettingValues, _ action: LetterOrder.Action, _ further: (inout LetterOrder) -> Void) async throws
    -> ExitCode
  {
    var isDiscard = false
    if case .discard = action { isDiscard = true }
    let filter = try Settings.filter(values, now: WallClock.milliseconds())
    guard !filter.isEverything || values[Settings.everything] else {
      throw UsageError(.missing, "which letters? give some, or a filter such as --reason, or --everything")
    }
    let kafka = try ClusterSettings.kafka(values, client: "carillon-dead-letters")
    let topics = ClusterSettings.topics(values)
    _ = try await Admin.with(kafka) { try await $0.partitions(of: topics.deadLetters, at: kafka) }
    if case .redrive(let edits) = action, !edits.isNew {
      try await ClusterTool.check(kafka, topics) { try await $0.check(name: values[ClusterSettings.name]) }
    }
    var order = LetterOrder(
      action, filter, by: Machine.person, cluster: isDiscard ? ClusterSettings.defaultName : values[ClusterSettings.name])
    order.limits = try await Admin.with(kafka) { try await $0.writeLimits(of: [topics.requests, topics.deadLetters], at: kafka) }
    order.isAgain = values[Settings.again]
    order.isDryRun = values[isDiscard ? Settings.discardsDryRun : Settings.dryRun]
    order.note = values[Settings.note]
    further(&order)
    var rules = isDiscard ? RequestRules(topics: topics) : RequestRules(values)
    if !isDiscard { rules.cluster = order.cluster }
    let printer = RedrivePrinter(isDryRun: order.isDryRun, isDiscard: isDiscard, devicesTopic: topics.devices)
    // The person must know what was redriven, even if nobody reads the output.
    if !order.isDryRun { StandardOutput.whenItFails(.useStandardError) }
    let waits = isDiscard || order.isDryRun ? nil : values[Settings.wait]
    if waits != nil { order.followed = OutcomeWatch.maximum }
    let isJSON = values[AnswerSettings.json]
    let (report, followed) = try await carryOut(order, rules, kafka, waits: waits) {
      if isJSON { StandardOutput.json(printer.json($0).text) } else { StandardOutput.line(printer.line($0)) }
    } onOutcome: {
      print($0, isJSON: isJSON, prefix: values[ClusterSettings.topicPrefix])
    }
    if isJSON {
      let following = waits == nil ? nil : (notFollowed: report.done - report.written.count, waiting: followed.mailboxes)
      StandardOutput.json(printer.json(report, following: following).text)
    } else if report.counts[.selected] > 0 {
      for line in printer.text(report) { StandardOutput.line(line) }
      if let sentence = followed.waiting { StandardOutput.line(sentence) }
    }
    if report.isInterrupted { StandardError.line("interrupted: the same command continues") }
    if report.counts[.selected] == 0 { DeadLetterCommands.say(nothing: filter, of: report.counts[.letters]) }
    let isBad = report.counts[.selected] == 0 || report.counts[.left] + report.counts[.gone] + followed.rejected > 0 || report.isInterrupted
    return isBad ? .answerIsNo : .done
  }

  /// Executes the order and follows the redriven requests.
  private static func carryOut(
    _ order: LetterOrder, _ rules: RequestRules, _ kafka: KafkaConfiguration, waits: Duration?,
    onResult: @escaping @Sendable (LetterResult) -> Void, onOutcome: @Sendable (OutcomeWatch.Outcome) -> Void
  ) async throws -> (RedriveReport, Followed) {
    // Its watches end with the process.
    let signals = StopSignals(on: EventLoop(name: "signals"))
    try await signals.watch()
    let wayOn = order.isDryRun ? nil : "the same command continues\(order.promise)"
    return try await ReadingLog.with(kafka, loop: "dead-letters", wayOn: wayOn) { loop, log in
      let watch = OutcomeWatch(on: loop, kafka, rules)
      let waited = Mutex(Set<String>())
      if waits != nil { try await watch.begin() }
      let redriver = DeadLetterRedriver(on: loop, kafka, rules, order) {
        log.report($0)
      } onResult: {
        onResult($0)
      } onWaiting: { other in
        let isFirst = waited.withLock { $0.insert(other.run).inserted }
        if isFirst {
          StandardError.line("\(TerminalText.visible(other.by)) is working on the dead letters; this command continues afterwards")
        }
      }
      let stopping = Task {
        guard case .signal = await signals.ending() else { return }
        await redriver.stop()
        await watch.stop()
      }
      defer { stopping.cancel() }
      let report = try await redriver.carryOut()
      StandardOutput.flush()
      guard let waits, !report.isInterrupted else { return (report, Followed()) }
      let followed = Mutex(Followed())
      let further = report.done - report.written.count
      if further > 0 {
        let reason = report.done > OutcomeWatch.maximum ? "the maximum is \(OutcomeWatch.maximum)" : "Kafka has not told where they are"
        StandardError.line(
          "\(further) of the \(report.done) redriven requests are not followed, for \(reason): 'carillon explain APNS-ID' says what became of them"
        )
      }
      let nextLine = Mutex(ContinuousClock.now + .seconds(1))
      try await watch.follow(report.written, forMilliseconds: waits.wholeMilliseconds, waitsForAbsent: false) { progress in
        let now = ContinuousClock.now
        guard StandardError.isTerminal, progress.open > 0, nextLine.withLock({ $0 <= now }) else { return }
        nextLine.withLock { $0 = now + .seconds(5) }
        StandardError.line(
          "\(progress.open) of \(progress.followed) have no outcome yet: it waits for \((progress.remaining + 999) / 1_000) s more at most")
      } onOutcome: { outcome in
        followed.withLock { $0.take(outcome) }
        onOutcome(outcome)
        StandardOutput.flush()
      }
      return (report, followed.withLock { $0 })
    }
  }

  /// Prints the result of a redriven request.
  private static func print(_ outcome: OutcomeWatch.Outcome, isJSON: Bool, prefix: String) {
    let printer = TimelinePrinter(prefix: prefix, width: Terminal.width)
    guard isJSON else {
      let rest =
        switch outcome.standing {
        case .settled: ""
        case .waits(let devices): "  (waits in \(TerminalText.count(devices, "mailbox")))"
        case .unanswered(let devices): "  (\(TerminalText.count(devices, "connected device")) without an answer)"
        case .unjudged: "  (not judged yet)"
        }
      return StandardOutput.line(TerminalText.padded(outcome.name, 10) + "  " + printer.summary(outcome.explanation) + rest)
    }
    StandardOutput.json(
      JSONValue.object([
        "letter": outcome.name, "settled": outcome.standing == .settled, "waiting": outcome.standing.waiting,
        "outcome": printer.json(outcome.explanation),
      ]).text)
  }
}

/// The results of following redriven requests.
private struct Followed {
  /// Those that broke a rule, or could not be processed.
  var rejected = 0
  /// Those that wait for devices that are not connected, and in how many mailboxes.
  private var requests = 0
  private(set) var mailboxes = 0

  mutating func take(_ outcome: OutcomeWatch.Outcome) {
    if outcome.explanation.isRejected { rejected += 1 }
    guard outcome.standing.waiting > 0 else { return }
    requests += 1
    mailboxes += outcome.standing.waiting
  }

  /// The notifications in mailboxes; nil if there are none.
  var waiting: String? {
    guard requests > 0 else { return nil }
    return TerminalText.aligned("\(requests)", 10)
      + "  of these wait for devices that are not connected, as \(TerminalText.count(mailboxes, "notification")) in mailboxes"
  }
}

extension OutcomeWatch.Standing {
  /// How many devices that are not connected have the request in their mailboxes.
  fileprivate var waiting: Int { if case .waits(let devices) = self { devices } else { 0 } }
}

extension Explanation {
  /// Whether it broke a rule, or could not be processed.
  fileprivate var isRejected: Bool {
    switch state {
    case .rejected, .dead: true
    case .unknown, .unprocessed, .filtered, .unregistered, .underWay, .scheduled, .settled, .ended: false
    }
  }
}

extension LetterOrder {
  /// What happens with requests whose report was lost and that are written again, as the end of a sentence.
  fileprivate var promise: String {
    switch action {
    case .discard: ""
    // They have their first place, so they are judged as repeats.
    case .redrive(let edits) where !edits.isNew: ", and nothing is shown twice"
    case .redrive: "; a request whose acknowledgement was lost is written again, as another new request"
    }
  }
}
