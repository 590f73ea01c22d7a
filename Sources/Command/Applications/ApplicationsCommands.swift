import EventLoop
import JSON
import Notifications
import Operations
import Worker

/// `carillon applications stop`, `start`, `allow`, `disallow`, `limit` and `list`.
enum ApplicationsCommands {
  static let application = Argument("APPLICATION", "The application, by its bundle id: the apns-topic of its requests.", count: .one)
  static let reason = Setting<String?>(
    "applications.reason", .string("TEXT"), "The reason, which the events of its requests contain.")
  static let by = Setting<String?>("applications.by", .string("NAME"), "The person who does it. Absent: the user and the host.")
  static let isDryRun = Setting(
    "applications.dry-run", flag: "dry-run", .boolean, default: false, "Writes nothing: shows what would be done.")
  static let critical = Setting(
    "applications.critical", .boolean, default: false, "Critical notifications, which sound though the device is muted.")
  static let timeSensitive = Setting(
    "applications.time-sensitive", .boolean, default: false,
    "Time-sensitive notifications, which break through a focus, a summary and quiet hours.")
  static let all = Setting(
    "applications.all", .boolean, default: false, "Also the stops and limits that have ended, of about the last 31 days.")

  static let stop = Command(
    "applications stop", "stops an application: its notifications are not shown until it is started again",
    discussion:
      "From now until 'carillon applications start', by the timestamps of Kafka's records, each request of the application ends as filtered, with the reason ApplicationStopped. The notifications in its devices' mailboxes end in the same way. Removals continue. Workers follow at once, mostly within milliseconds; notifications that were sent to a device before stay there. Stopping a stopped application changes nothing, and is not an error. Then, or in the dry run, it searches requests of the application in the last hour, for at most five seconds, and warns if it finds none: most likely the name is misspelt. With --json the answer is an object. The exit code is 1 if somebody else has started it at the same time.",
    arguments: [application],
    groups: [SettingGroup("Stop", [reason, by, isDryRun]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [
      Example("applications stop com.example.shop --reason \"wrong prices\"", "stops it"),
      Example("applications stop com.example.shop --dry-run", "says what would be done"),
    ]
  ) { values in
    try await change(values, .stop(by: person(values), reason: text(values, reason)))
  }

  static let start = Command(
    "applications start", "starts a stopped application again",
    discussion:
      "Requests that are published from now on are shown. Earlier ones that were not shown stay filtered: publish them again if they are still wanted. Starting an application that is not stopped changes nothing, and is not an error. With --json the answer is an object. The exit code is 1 if somebody else has stopped it at the same time.",
    arguments: [application],
    groups: [SettingGroup("Start", [by, isDryRun]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [Example("applications start com.example.shop", "starts it again")]
  ) { values in
    try await change(values, .start(by: person(values)))
  }

  static let allow = Command(
    "applications allow", "allows an application to send critical or time-sensitive notifications",
    discussion:
      "A notification whose application is not allowed its interruption level counts as active. Workers get a change at once; notifications that were sent before stay as they are. The application keeps what it was allowed before. The person has the last word: a device on which criticalAlert or timeSensitive is off gets the notification as an active one. With --json the answer is an object. The exit code is 1 if somebody else has withdrawn it at the same time.",
    arguments: [application],
    groups: [SettingGroup("Allow", [critical, timeSensitive, isDryRun]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [Example("applications allow com.example.alarm --critical --time-sensitive", "allows both")]
  ) { values in
    try await grant(values, ApplicationStops.Change.allow)
  }

  static let disallow = Command(
    "applications disallow", "withdraws what 'applications allow' has allowed",
    discussion:
      "From now on notifications of these levels count as active. Taking back what was not allowed changes nothing, which is no error. With --json the answer is an object. The exit code is 1 when somebody else has allowed it at the same time.",
    arguments: [application],
    groups: [SettingGroup("Disallow", [critical, timeSensitive, isDryRun]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [Example("applications disallow com.example.alarm --critical", "its critical notifications count as active")]
  ) { values in
    try await grant(values, ApplicationStops.Change.disallow)
  }

  static let list = Command(
    "applications list", "lists stopped applications, those with rate limits, and those with critical or time-sensitive notifications",
    discussion:
      "Prints a line for each stopped application with the time, the person and the reason; with --all also the stops that have ended. Another line is for each that may send critical or time-sensitive notifications, and for each that has a rate limit. With --json each application is an object. The exit code is 1 if there is none.",
    groups: [SettingGroup("List", [all]), AnswerSettings.group, ClusterSettings.kafkaGroup],
    examples: [
      Example("applications list", "what is stopped now"),
      Example("applications list --all --json", "all stops, for a script"),
    ]
  ) { values in
    let printer = ApplicationPrinter(now: WallClock.milliseconds())
    let (showsAll, isJSON) = (values[all], values[AnswerSettings.json])
    let entries = try await ReadingLog.with(values, "applications", needing: \.applications) { try await $0.applications() }.filter {
      showsAll || $0.stops.open != nil || !$0.stops.granted.isEmpty || $0.stops.limits.last != nil
    }
    for entry in entries {
      if isJSON {
        StandardOutput.json(printer.json(entry.application, entry.stops, showsAll: showsAll).text)
      } else {
        for line in printer.lines(entry, showsAll: showsAll) { StandardOutput.line(line) }
      }
    }
    if entries.isEmpty {
      StandardError.line("no application \(showsAll ? "was" : "is") stopped, limited or allowed anything")
    }
    return entries.isEmpty ? .answerIsNo : .done
  }

  // MARK: Shared by these commands

  private static func change(_ values: SettingValues, _ change: ApplicationStops.Change) async throws -> ExitCode {
    let application = try name(values)
    return try await make(change, of: application, values) { printer, stops in
      printer.line(application, stops)
    } stands: { stops in
      (stops.open != nil) == change.isStop
    }
  }

  /// Grants the levels that the flags name to an application, or takes them back.
  private static func grant(_ values: SettingValues, _ change: (GrantedLevels) -> ApplicationStops.Change) async throws -> ExitCode {
    let application = try name(values)
    var levels: GrantedLevels = []
    if values[critical] { levels.insert(.critical) }
    if values[timeSensitive] { levels.insert(.timeSensitive) }
    guard !levels.isEmpty else { throw UsageError(.wrongValue, "give --critical, --time-sensitive or both") }
    let made = change(levels)
    return try await make(made, of: application, values) { printer, stops in
      printer.grantLine(application, stops)
    } stands: { stops in
      if case .allow = made { stops.granted.isSuperset(of: levels) } else { stops.granted.isDisjoint(with: levels) }
    }
  }

  /// Makes a change and prints the state after it.
  ///
  /// - Parameters:
  ///   - line: the state in words.
  ///   - stands: whether the state is what was asked for.
  static func make(
    _ change: ApplicationStops.Change, of application: Name, _ values: SettingValues,
    line: (ApplicationPrinter, ApplicationStops) -> String, stands: (ApplicationStops) -> Bool
  ) async throws -> ExitCode {
    let (now, isDryRun) = (WallClock.milliseconds(), values[isDryRun])
    let (outcome, sighting) = try await ReadingLog.with(values, "applications", needing: \.applications) {
      ledger -> (ApplicationChange, ApplicationSighting?) in
      let outcome = try await ledger.change(application, change, forgettingBefore: now - Topics.longestRetention, isDryRun: isDryRun)
      // After the stop, which is urgent.
      guard change.isStop, outcome.isChanged else { return (outcome, nil) }
      return (outcome, await look(for: application, ledger, now: now))
    }
    let printer = ApplicationPrinter(now: max(now, outcome.stops.open?.from ?? now))
    if values[AnswerSettings.json] {
      let isChanged = outcome.isChanged && !isDryRun
      StandardOutput.json(printer.json(application, outcome.stops, changed: isChanged, contested: outcome.isContested, sighting).text)
    } else {
      StandardOutput.line(line(printer, outcome.stops))
    }
    if isDryRun, outcome.isChanged { StandardError.line("it would be changed; nothing was written") }
    if !outcome.isChanged { StandardError.line("nothing was changed: it is so already") }
    if let sighting, !sighting.isSeen {
      for line in printer.warning(application, sighting, isDryRun: isDryRun) { StandardError.line(line) }
    }
    if outcome.isContested { StandardError.line("somebody else has changed it at the same time: the line above is the present state") }
    return isDryRun || stands(outcome.stops) ? .done : .answerIsNo
  }

  /// Whether requests of an application came lately; nil where that cannot be found out, which keeps nobody from stopping it.
  private static func look(for application: Name, _ ledger: ClusterTool, now: Int64) async -> ApplicationSighting? {
    do {
      return try await ledger.lookForRequests(of: application, now: now)
    } catch {
      StandardError.line("it is unknown whether \(application) has requests: \(error)")
      return nil
    }
  }

  static func name(_ values: SettingValues) throws(UsageError) -> Name { try checked(Name(values[application].first ?? "")) }

  /// The same name, if it may be that of an application.
  static func checked(_ name: Name) throws(UsageError) -> Name {
    guard name.withBytes(ApplicationStops.isApplication) else {
      throw UsageError(.wrongValue, "'\(PrintedText.echo(name.text))' is not an application. \(ApplicationStops.nameRule)")
    }
    return name
  }

  static func person(_ values: SettingValues) throws(UsageError) -> String {
    if let name = try text(values, by) { return name }
    // A long host name must not prevent a stop.
    return ApplicationStop.cut(Machine.person)
  }

  private static func text(_ values: SettingValues, _ setting: Setting<String?>) throws(UsageError) -> String? {
    guard let text = values[setting] else { return nil }
    guard ApplicationStop.isText(text) else {
      throw UsageError(
        .wrongValue, "--\(setting.declaration.flag) takes 1 to \(ApplicationStop.textBytes) bytes of text without control characters")
    }
    return text
  }
}

extension ApplicationStops.Change {
  fileprivate var isStop: Bool {
    switch self {
    case .stop: true
    case .start, .allow, .disallow, .limit: false
    }
  }
}
