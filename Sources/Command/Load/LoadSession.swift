import EventLoop
import Notifications
import Operations
import Worker

/// One run of `carillon load`, from the first connection to the report.
struct LoadSession: Sendable {
  let values: SettingValues
  /// The load of this process.
  let share: LoadShare
  let name: String
  let place: LoadPlace
  let notes: LoadNotes
  let files: LoadFiles
  let loop: EventLoop
  private var isJSON: Bool { values[AnswerSettings.json] }

  func run() async throws -> ExitCode {
    // The report tells of work that cannot be undone.
    StandardOutput.whenItFails(.useStandardError)
    let notes = notes
    let run = LoadRun(on: loop, share, run: name, place) { notes.take($0) }
    let signals = StopSignals(on: loop)
    try await signals.watch()
    let stopping = Task {
      _ = await signals.ending()
      StandardError.line("ending: the devices are being unregistered")
      await run.stop()
    }
    defer { stopping.cancel() }
    StandardError.line("run \(name): connecting \(TerminalText.count(share.plan.devices.count, "device"))")
    let report: LoadReport
    do {
      try await LoadCommand.checking(place) { try await run.connect() }
      let start = values[LoadSettings.start].map { " from \(Timestamp.text($0)) on" } ?? ""
      StandardError.line("run \(name): publishing\(start)")
      report = try await LoadCommand.checking(place) { try await measure(run) }
    } catch {
      _ = await leave(run)
      throw error
    }
    StandardError.line("run \(name): unregistering \(TerminalText.count(share.plan.devices.count, "device"))")
    let left = await leave(run)
    LoadPrinter.print(report, isJSON: isJSON)
    try files.write(report)
    if left > 0 {
      StandardError.line("\(TerminalText.count(left, "device")) could not be unregistered: 'carillon load clean \(name)' removes them")
    }
    return report.complaints.isEmpty && left == 0 ? .done : .answerIsNo
  }

  private func leave(_ run: LoadRun) async -> Int {
    let left = await run.unregister()
    await run.close()
    return left
  }

  // MARK: Measuring

  private func measure(_ run: LoadRun) async throws -> LoadReport {
    // Ends before the report is printed.
    async let _ = show(run)
    return values[LoadSettings.findsCapacity] ? try await capacity(run) : try await single(run)
  }

  private func single(_ run: LoadRun) async throws -> LoadReport {
    let result = try await run.publish(at: values[LoadSettings.start])
    var report = LoadReport(run: name, result: result, broken: LoadSettings.broken(values, result), facts: facts)
    if values[LoadSettings.share] != nil {
      let plan = SettingsProfile.text(of: LoadSettings.planGroups, in: values)
      report.share = LoadShareResult(run: name, plan: plan, share: share, result: result, findings: notes.findings)
    }
    return report
  }

  private func capacity(_ run: LoadRun) async throws -> LoadReport {
    var search = LoadCapacitySearch(from: share.plan.requests.rate)
    var steps: [LoadReport.Step] = []
    var best: LoadResult?
    var last: LoadResult?
    while let rate = search.next {
      var requests = share.plan.requests
      requests.rate = rate
      let result = try await run.publish(requests)
      last = result
      let p99 = result.measures[.arrived].value(atPercentile: 99)
      let isKept = result.isGood && p99 <= Int64(values[LoadSettings.p99].wholeMilliseconds) * 1000
      let step = (rate: rate, p99: p99, schedule: result.schedule, isKept: isKept)
      steps.append(step)
      print(step)
      if isKept { best = result }
      search.take(isKept: isKept)
      if result.isStopped { break }
    }
    guard let result = best ?? last else { throw Failure(.dependencyMissing, "no step could be measured") }
    let missed = best == nil ? ["the goal at any rate"] : []
    return LoadReport(run: name, result: result, steps: steps, broken: LoadSettings.broken(values, result) + missed, facts: facts)
  }

  /// What one needs to repeat the run. Secrets are masked, and what a file or a variable gives is named by its place.
  private var facts: [(name: String, value: String)] {
    let given = values.given.filter { if case .flag = $0.source { true } else { false } }
    return [
      ("profile", values[LoadSettings.profile] ?? "none"), ("version", Program.version), ("machine", Machine.description),
      ("command", "carillon load " + given.map { $0.text == "true" ? "\($0.source)" : "\($0.source) \($0.text)" }.joined(separator: " ")),
    ]
  }

  // MARK: Showing

  private static let (liveMilliseconds, progressMilliseconds) = (1_000, 10_000)

  private func show(_ run: LoadRun) async {
    let screen = notes.isLive ? ReportScreen(isJSON: false, isWatching: true) : nil
    let pause = Duration.milliseconds(screen == nil ? Self.progressMilliseconds : Self.liveMilliseconds)
    while !Task.isCancelled {
      if let result = await run.result, result.startedAt > 0 {
        let printer = LoadPrinter(name, result)
        if let screen {
          screen.show {
            []
          } text: { width, _ in
            printer.live(width: width) + notes.latest
          }
        } else if !isJSON {
          StandardError.line(printer.progress)
        }
      }
      try? await Task.sleep(for: pause)
    }
  }

  private func print(_ step: LoadReport.Step) {
    guard !isJSON else { return }
    StandardOutput.line(
      "\(step.isKept ? "kept  " : "missed")  \(step.rate) a second  p99 \(LoadText.time(step.p99))  schedule \(LoadText.percent(step.schedule))"
    )
    StandardOutput.flush()
  }
}
