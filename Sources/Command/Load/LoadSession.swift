import EventLoop
import JSON
import Kafka
import Operations
import Worker

/// One run of `carillon load`, from the first connection to the report.
struct LoadSession: Sendable {
  private let values: SettingValues
  private let plan: LoadPlan
  private let name: String
  private let place: LoadPlace
  private let files: LoadFiles
  private let loop: EventLoop
  private let isJSON: Bool

  init(_ values: SettingValues, _ plan: LoadPlan, _ name: String, _ place: LoadPlace, _ files: LoadFiles, on loop: EventLoop) {
    (self.values, self.plan, self.name, self.place, self.files, self.loop) = (values, plan, name, place, files, loop)
    isJSON = values[AnswerSettings.json]
  }

  func run() async throws -> ExitCode {
    // The report tells of work that cannot be undone.
    StandardOutput.whenItFails(.useStandardError)
    let notes = LoadNotes(isJSON: isJSON, isLive: !isJSON && Terminal.width != nil)
    let run = LoadRun(on: loop, plan, run: name, place) { notes.take($0, $1, plan) }
    let signals = StopSignals(on: loop)
    try await signals.watch()
    let stopping = Task {
      _ = await signals.ending()
      StandardError.line("ending: the devices are being unregistered")
      await run.stop()
    }
    defer { stopping.cancel() }
    StandardError.line("run \(name): connecting \(TerminalText.count(plan.devices.count, "device"))")
    let report: LoadReport
    do {
      try await LoadCommand.checking(place) { try await run.connect() }
      StandardError.line("run \(name): publishing")
      report = try await LoadCommand.checking(place) { try await measure(run, notes) }
    } catch {
      _ = await leave(run)
      throw error
    }
    let left = await leave(run)
    print(report)
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

  private func measure(_ run: LoadRun, _ notes: LoadNotes) async throws -> LoadReport {
    let showing = Task { try await show(run, notes) }
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
    let result = try await run.publish()
    return LoadReport(run: name, result: result, broken: broken(result))
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
    return LoadReport(run: name, result: result, steps: steps, broken: broken(result) + (best == nil ? ["the goal at any rate"] : []))
  }

  // MARK: Showing

  private static let (liveMilliseconds, progressMilliseconds) = (1_000, 10_000)

  private func show(_ run: LoadRun, _ notes: LoadNotes) async throws {
    let screen = notes.isLive ? try await ReportScreen(isJSON: false, isWatching: true, on: loop) : nil
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
