import EventLoop
import JSON
import Kafka
import Notifications
import Operations
import Worker

/// One run of `carillon load`, from the first connection to the report.
struct LoadSession: Sendable {
  private let values: SettingValues
  /// The load of all processes.
  private let plan: LoadPlan
  private let name: String
  private let place: LoadPlace
  private let notes: LoadNotes
  private let loop: EventLoop
  private let isJSON: Bool
  /// The files of the report. Only the process that reports has any.
  var files: LoadFiles?
  /// The load of this process.
  private var share: LoadShare
  /// The other processes; nil without any.
  private var shared: SharedRun?

  init(_ values: SettingValues, _ plan: LoadPlan, _ name: String, _ place: LoadPlace, _ notes: LoadNotes, on loop: EventLoop) {
    (self.values, self.plan, self.name, self.place, self.notes, self.loop) = (values, plan, name, place, notes, loop)
    isJSON = values[AnswerSettings.json]
    share = LoadShare(all: plan)
  }

  /// Makes it the run of one of several processes.
  mutating func share(_ shared: SharedRun, _ share: LoadShare) { (self.shared, self.share) = (shared, share) }

  /// Whether this process reports for all.
  private var reports: Bool { share.number == 0 }

  func run() async throws -> ExitCode {
    // The report tells of work that cannot be undone.
    StandardOutput.whenItFails(.useStandardError)
    let (share, shared, notes) = (share, shared, notes)
    let run = LoadRun(on: loop, share, run: name, place) { violation, names in
      let finding = LoadFinding(violation, names, share.plan)
      notes.take(finding)
      shared?.tell(finding)
    }
    let signals = StopSignals(on: loop)
    try await signals.watch()
    let stopping = Task {
      _ = await signals.ending()
      StandardError.line("ending: the devices are being unregistered")
      await run.stop()
      await shared?.stop()
    }
    defer { stopping.cancel() }
    StandardError.line("run \(name): connecting \(TerminalText.count(share.plan.devices.count, "device"))")
    let report: LoadReport
    do {
      try await LoadCommand.checking(place) { try await run.connect() }
      if shared == nil { StandardError.line("run \(name): publishing") }
      report = try await LoadCommand.checking(place) { try await measure(run) }
    } catch {
      await shared?.close("\(error)")
      _ = await leave(run)
      throw error
    }
    StandardError.line("run \(name): unregistering \(TerminalText.count(share.plan.devices.count, "device"))")
    let left = await leave(run)
    await shared?.close("it is over")
    if reports {
      print(report)
      try files?.write(report)
    } else {
      StandardError.line("run \(name): the share of this process is done; the first process reports for all")
    }
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
    let showing = Task { try await show(run) }
    do {
      let report = values[LoadSettings.findsCapacity] ? try await capacity(run) : try await single(run)
      showing.cancel()
      try await showing.value
      return report
    } catch {
      showing.cancel()
      throw error
    }
  }

  private func single(_ run: LoadRun) async throws -> LoadReport {
    let result = if let shared { try await publish(run, shared) } else { try await run.publish() }
    return LoadReport(run: name, result: result, broken: broken(result), facts: facts)
  }

  /// Publishes the share of this process, and answers with the numbers that it reports.
  private func publish(_ run: LoadRun, _ shared: SharedRun) async throws -> LoadResult {
    let attending = Task { await shared.attend(run) }
    defer { attending.cancel() }
    let own = try await run.publish {
      StandardError.line("run \(name): ready, and waiting for the start")
      let start = try await shared.ready()
      StandardError.line("run \(name): publishing from \(Timestamp.text(start)) on")
      return start
    }
    attending.cancel()
    await attending.value
    return try await shared.finish(own, of: plan)
  }

  private func broken(_ result: LoadResult) -> [String] { values[LoadSettings.requirements].filter { !$0.holds(in: result) }.map(\.text) }

  private func capacity(_ run: LoadRun) async throws -> LoadReport {
    var search = LoadCapacitySearch(from: plan.requests.rate)
    var steps: [LoadReport.Step] = []
    var best: LoadResult?
    var last: LoadResult?
    while let rate = search.next {
      var requests = plan.requests
      requests.rate = rate
      let result = try await run.publish(requests)
      last = result
      let p99 = result.measures[.arrived].value(atPercentile: 99)
      let isKept = result.isGood && p99 <= Int64(values[LoadSettings.p99].wholeMilliseconds) * 1000
      let step = LoadReport.Step(rate: rate, p99: p99, schedule: result.schedule, isKept: isKept)
      steps.append(step)
      print(step)
      if isKept { best = result }
      search.take(isKept: isKept)
      if result.isStopped { break }
    }
    guard let result = best ?? last else { throw Failure(.dependencyMissing, "no step could be measured") }
    let missed = best == nil ? ["the goal at any rate"] : []
    return LoadReport(run: name, result: result, steps: steps, broken: broken(result) + missed, facts: facts)
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

  private func show(_ run: LoadRun) async throws {
    let screen = notes.isLive ? try await ReportScreen(isJSON: false, isWatching: true, on: loop) : nil
    let pause = Duration.milliseconds(screen == nil ? Self.progressMilliseconds : Self.liveMilliseconds)
    while !Task.isCancelled {
      if var result = await run.result, result.startedAt > 0 {
        if reports, let shared { result = await shared.sum(result, of: plan) }
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
      if let screen { await screen.wait(for: pause) {} } else { try? await Task.sleep(for: pause) }
    }
  }

  private func print(_ step: LoadReport.Step) {
    guard !isJSON else { return }
    StandardOutput.line(
      "\(step.isKept ? "kept  " : "missed")  \(step.rate) a second  p99 \(LoadPrinter.time(step.p99))  schedule \(LoadPrinter.percent(step.schedule))"
    )
    StandardOutput.flush()
  }

  private func print(_ report: LoadReport) {
    if isJSON {
      StandardOutput.json(report.json.text)
    } else {
      for line in LoadPrinter(name, report.result).summary(report, width: Terminal.width) { StandardOutput.line(line) }
    }
    StandardOutput.flush()
  }
}
