import EventLoop
import Operations
import Worker

/// `carillon load clean`.
enum LoadCleanCommand {
  private static let run = Argument("RUN", "The name of the run.")

  static let command = Command(
    "load clean", "unregisters the devices that a killed run left behind",
    discussion:
      "Finds the devices of the run in the topic devices, those of all its shares, connects each, and unregisters it. A process of the run that still goes on loses them.",
    arguments: [run],
    groups: [
      SettingGroup("Devices", [LoadSettings.fanOut], advanced: [LoadSettings.authorities, LoadSettings.keyFile]),
      ClusterSettings.kafkaGroup,
    ],
    examples: [Example("load clean 2026-11-23t14-41-09", "after a run that was killed")]
  ) { values in
    guard let name = values[run].first, SettingKind<String>.runName.accepts(name) else {
      throw UsageError(.wrongValue, "RUN is the name of a run: 1 to 40 lower-case letters, digits and hyphens")
    }
    let place = try LoadCommand.place(values, client: "carillon-load-clean")
    let loop = EventLoop(name: "load")
    let devices = try await LoadCommand.checking(place) {
      try await ClusterTool(on: loop, place.kafka, RequestRules(topics: place.topics)).devices(of: LoadNames(run: name, series: 0))
    }
    guard let last = devices.last else {
      StandardError.line("no device of a run \(name) is registered")
      await loop.close()
      return .answerIsNo
    }
    // The devices below the last one that are gone already register and unregister once more.
    var plan = LoadPlan()
    (plan.devices.count, plan.devices.perUser) = (last + 1, 1)
    let run = LoadRun(on: loop, LoadShare(all: plan), run: name, place) { _ in }
    do { try await LoadCommand.checking(place) { try await run.connect() } } catch {
      await run.close()
      throw error
    }
    let left = await run.unregister()
    await run.close()
    await loop.close()
    StandardError.line("\(TerminalText.count(devices.count - left, "device")) unregistered")
    return left == 0 ? .done : .answerIsNo
  }
}
