import EventLoop
import Glibc
import Notifications
import Operations
import Worker

/// `carillon load --join`: a share of a run that another process has begun.
enum LoadJoin {
  static func run(_ name: String, _ given: SettingValues) async throws -> ExitCode {
    try LoadSettings.checkJoin(given)
    let place = try LoadCommand.place(given, client: "carillon-load")
    _ = try await LoadCommand.checking(place) { try await place.checkMark(production: given[LoadSettings.production], isShared: true) }
    let loop = EventLoop(name: "load")
    let notes = LoadNotes(given)
    let shared = LoadCommand.shared(name, given, place, notes, on: loop)
    let (agreement, number) = try await LoadCommand.checking(place) { try await shared.join() }
    var session: LoadSession
    do {
      var values = given
      try SettingsProfile("the plan of run \(name)", text: agreement.plan).fill(LoadSettings.planGroups, of: &values)
      let plan = try LoadSettings.plan(values)
      try plan.check(processes: agreement.processes)
      session = LoadSession(values, plan, name, place, notes, on: loop)
      session.share(shared, plan.share(number, of: agreement.processes))
    } catch {
      let reason = (error as? LoadPlan.Problem).map { "--\($0.flag) \($0.rule)" } ?? "\(error)"
      await shared.close("it cannot carry out the plan: \(reason)")
      throw Failure(.wrongUsage, "--join: the plan of run \(name) cannot be carried out by this program: \(reason)")
    }
    notes.say("run \(name): this is process \(number + 1) of \(agreement.processes)")
    let code = try await session.run()
    await loop.close()
    return code
  }

  /// The name of this process for a person: the machine, and its number there.
  static var processName: Name {
    var host = [CChar](repeating: 0, count: 256)
    let isKnown = gethostname(&host, host.count - 1) == 0
    let bytes = host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return Name((isKnown ? String(decoding: bytes, as: UTF8.self) : "?") + "/\(getpid())")
  }
}
