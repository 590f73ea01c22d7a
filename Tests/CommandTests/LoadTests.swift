import EventLoop
import Foundation
import JSON
import Kafka
import TestSupport
import Testing
import Worker

@testable import Command
@testable import Operations

/// What `carillon load` promises to the person who types it.
@Suite struct LoadTests {
  @Test(.onlyInAll("it is load: a run keeps its schedule or not by the machine"))
  func `a run reaches every device, reports in JSON and as a page, and leaves nothing registered`()
    async throws
  {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      let (page, result) = (carillon.folder.appendingPathComponent("load.html"), carillon.folder.appendingPathComponent("load.json"))
      func load(_ name: String) async throws -> CarillonCommand.Result {
        try await carillon.run(
          [
            "load", "--profile", "smoke", "--duration", "4s", "--run", name, "--require", "reach=1,max=1h", "--report", page.path,
            "--result", result.path,
          ])
      }
      // A machine that stands still makes requests late, and servers silent. Then the run is repeated.
      var (name, run) = ("first-0", try await load("first-0"))
      for attempt in 1..<5 where run.status != 0 || run.output.contains("did not answer") {
        name = "first-\(attempt)"
        run = try await load(name)
      }
      #expect(run.status == 0, "it said: \(run.errors)\n\(run.output)")
      #expect(run.output.contains("reach 100 %") && !run.output.contains("WRONG"))
      let report = try JSONValue(parsing: try String(contentsOf: result, encoding: .utf8))
      #expect(report["offered"]?.integerValue == 80 && report["published"]?.integerValue == 80)
      #expect(report["good"]?.boolValue == true && report["reach"]?.doubleValue == 1)
      let pairs = report["pairs"]?["reached"]?.integerValue
      for stage in ["arrived", "acknowledged", "told"] { #expect(report["stages"]?[stage]?["count"]?.integerValue == pairs) }
      #expect(report["stages"]?["published"]?["count"]?.integerValue == 80)
      // Each request passes the stages of the workers; a scheduled one does twice, and so does one that is published twice.
      for (stage, count) in [("transformed", 80), ("sent", pairs ?? 0)] {
        let numbers = report["workerStages"]?[stage]
        #expect((numbers?["count"]?.integerValue ?? 0) >= count && (numbers?["p50AtMost"]?.doubleValue ?? 0) > 0, "\(stage)")
      }
      for part in ["this run", "up", "redis"] {
        let used = report["processors"]?[part]
        #expect(used?["processes"]?.integerValue == 1 && (used?["seconds"]?.doubleValue ?? 0) > 0, "\(part)")
        #expect(run.lines.contains { $0.hasPrefix("\(part) ") })
      }
      #expect((report["processorMsPerRequest"]?.doubleValue ?? 0) > 0 && report["silentServers"]?.elements?.isEmpty == true)
      let html = try String(contentsOf: page, encoding: .utf8)
      #expect(html.contains("<svg") && html.contains("stroke-dasharray") && html.contains("Load run \(name)"))
      #expect(html.contains("aria-label=\"Processor time\"") && html.contains("transformed (at most)"))
      for outside in ["http://", "https://", "<script", "<link", "@import"] { #expect(!html.contains(outside)) }

      // Its devices are gone, so the name is free again.
      let devices = try await carillon.run(["devices", "--user", "load-\(name)-0", "--app", "load.\(name)"])
      #expect(devices.status == 1, "it said: \(devices.output)")
      try await up.stop()
    }
  }

  @Test(.onlyInAll("it is load: a run keeps its schedule or not by the machine"))
  func `without a Redis the workers that are given are asked, and one that does not answer is named`()
    async throws
  {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      let place = try JSONValue(parsing: try await up.firstLine())
      func address(_ name: String) throws -> String { try #require(place[name]?.stringValue) }
      let line = try [
        "load", "--json", "--kafka", address("kafka"), "--fan-out", address("devices"), "--workers",
        address("admin") + ",http://127.0.0.1:1", "--devices", "4", "--rate", "10", "--duration", "3s",
      ]
      var (status, report, silent): (Int32, JSONValue, [String]) = (-1, .null, [])
      // A machine that stands still makes requests late, and the other server silent. Then the run is repeated.
      for _ in 0..<5 {
        let run = try await carillon.run(line)
        report = try JSONValue(parsing: try #require(run.lines.last, "it said: \(run.errors)"))
        silent = report["silentServers"]?.elements?.compactMap(\.stringValue) ?? []
        status = run.status
        if status == 0, silent.count == 1 { break }
      }
      #expect(status == 0, "it said: \(report.text)")
      #expect(report["workerStages"]?["sent"]?["count"]?.integerValue == report["pairs"]?["reached"]?.integerValue)
      #expect((report["processors"]?["up"]?["seconds"]?.doubleValue ?? 0) > 0 && report["processors"]?["redis"] == nil)
      #expect(silent.count == 1 && silent[0].hasPrefix("http://127.0.0.1:1 did not answer: "), "\(silent)")
      try await up.stop()
    }
  }

  /// The longest of the delays that a run has reported.
  private static func longestDelay(_ result: CarillonCommand.Result?) throws -> JSONValue? {
    let report = try JSONValue(parsing: try #require(result?.lines.last))
    return report["delays"]?.elements?.max { ($0["longestSeconds"]?.doubleValue ?? 0) < ($1["longestSeconds"]?.doubleValue ?? 0) }
  }

  @Test(.onlyInAll("it is load: a run keeps its schedule or not by the machine"))
  func `a stall of the cluster is reported with its length, and counts for the requests that it delays`()
    async throws
  {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      var result: CarillonCommand.Result?
      // A machine that stands still may begin the stall when the run is over, or publish nothing in it. Then the run is repeated.
      for attempt in 0..<3 {
        let run = try carillon.start(
          ["load", "--json", "--devices", "10", "--rate", "30", "--duration", "20s", "--run", "stalled-\(attempt)"])
        try await run.untilErrors(contain: "publishing")
        for _ in 0..<600 { await pause() }
        up.signal(SIGSTOP)
        for _ in 0..<1_200 { await pause() }
        up.signal(SIGCONT)
        result = try await run.result()
        if (try Self.longestDelay(result)?["longestSeconds"]?.doubleValue ?? 0) >= 5 { break }
      }
      let report = try JSONValue(parsing: try #require(result?.lines.last))
      #expect(report["violations"]?["lost"]?.integerValue == 0 && report["pairs"]?["unfinished"]?.integerValue == 0)
      let longest = try Self.longestDelay(result)
      #expect((longest?["longestSeconds"]?.doubleValue ?? 0) >= 5, "it said: \(result?.output ?? "")")
      // Those that were due at its end waited for less than a second.
      let (from, to) = (longest?["fromSeconds"]?.doubleValue ?? 0, longest?["toSeconds"]?.doubleValue ?? 0)
      #expect(to - from >= min(4, 19 - from), "it said: \(result?.output ?? "")")
      #expect((report["stages"]?["arrived"]?["max"]?.doubleValue ?? 0) >= 5000)
      // A fifth of all requests was due in the stall.
      if to - from >= 4 { #expect((report["stages"]?["arrived"]?["p90"]?.doubleValue ?? 0) >= 1000) }
      try await up.stop()
    }
  }

  @Test(.onlyInAll("it is load: a run keeps its schedule or not by the machine"))
  func `after a kill the devices are still registered, and clean removes them`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      let run = try carillon.start(["load", "--devices", "5", "--rate", "10", "--duration", "60s", "--run", "killed"])
      try await run.untilErrors(contain: "requests published")
      run.signal(SIGKILL)
      _ = try await run.result()
      let again = try await carillon.run(["load", "--devices", "5", "--run", "killed"])
      #expect(again.status == 2 && again.errors.contains("'carillon load clean killed'"), "it said: \(again.errors)")
      let clean = try await carillon.run(["load", "clean", "killed"])
      #expect(clean.status == 0 && clean.errors.contains("5 devices unregistered"), "it said: \(clean.errors)")
      let further = try await carillon.run(["load", "clean", "killed"])
      #expect(further.status == 1)
      try await up.stop()
    }
  }

  @Test func `a signal ends a run in order`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      let run = try carillon.start(["load", "--devices", "5", "--rate", "10", "--duration", "10m", "--run", "ended"])
      try await run.untilErrors(contain: "requests published")
      run.signal(SIGINT)
      let result = try await run.result()
      #expect(result.status == 1 && result.output.contains("the run was ended early"), "it said: \(result.errors)")
      let clean = try await carillon.run(["load", "clean", "ended"])
      #expect(clean.status == 1, "no device is left: \(clean.errors)")
      try await up.stop()
    }
  }

  @Test(.onlyInAll("it is load: a run keeps its schedule or not by the machine"))
  func `the search for a capacity prints each step, and finds none for a goal that nothing keeps`()
    async throws
  {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      let run = try await carillon.run(
        ["load", "--devices", "4", "--find-capacity", "--rate", "8", "--step", "2s", "--p99", "1ms"])
      #expect(run.status == 1 && run.output.contains("the goal at any rate does not hold"), "it said: \(run.errors)")
      for rate in [8, 4, 2, 1] { #expect(run.output.contains("missed  \(rate) a second  p99 "), "it said: \(run.output)") }
      try await up.stop()
    }
  }

  @Test func `the whole plan is printed as a profile that can be read again`() async throws {
    try await CarillonCommand.with { carillon in
      let printed = try await carillon.run(["load", "--profile", "mixed", "--rate", "7", "--dry-run"])
      #expect(printed.status == 0 && printed.errors.isEmpty)
      #expect(
        printed.lines.contains("rate = 7") && printed.lines.contains("devices = 2000") && printed.lines.contains("sizes = 200,600,2500"))
      let again = try LoadSettings.withProfile(try Typed.values(["load", "--profile", try carillon.file("own.load", printed.output)]))
      #expect(SettingsProfile.text(of: LoadSettings.planGroups, in: again) == printed.output)
    }
  }

  @Test(arguments: LoadProfile.shipped.keys) func `each built-in profile is a plan`(profile: String) throws {
    let values = try LoadSettings.withProfile(try Typed.values(["load", "--profile", profile]))
    #expect(throws: Never.self) { try LoadSettings.plan(values) }
  }

  @Test func `fewer devices than a person has by default are a plan, which can be printed and read again`() throws {
    let values = try Typed.values(["load", "--devices", "1"])
    #expect(try LoadSettings.plan(values).devices.perUser == 1)
    try TestFolder.with { folder in
      let file = try folder.write("one.load", SettingsProfile.text(of: LoadSettings.planGroups, in: values))
      let again = try LoadSettings.withProfile(try Typed.values(["load", "--profile", file]))
      #expect(try LoadSettings.plan(again).devices.count == 1)
    }
  }

  @Test func `a report to a FIFO that nobody reads is refused before the run`() async throws {
    try await TestFolder.with { folder in
      let path = folder.path + "/report"
      #expect(mkfifo(path, 0o600) == 0)
      let refused = try await Typed.refusal(["load", "--kafka", "127.0.0.1:1", "--fan-out", "ws://127.0.0.1:1", "--report", path])
      #expect(refused.code == .wrongUsage && refused.text.contains("it is a FIFO that nobody reads"), "it says: \(refused.text)")
    }
  }

  @Test func `the progress says what the run waits for after its last request`() {
    let plan = LoadPlan()
    let measures = LoadMeasures(durationMilliseconds: plan.requests.durationMilliseconds)
    var result = LoadResult(plan: plan, startedAt: 0, elapsed: 0, measures: measures, servers: LoadServers(startedAt: 0, measures))
    #expect(!LoadPrinter("r", result).progress.contains("waiting"))
    result.waiting = LoadLedger.Waiting(arrivals: 175, events: 3, milliseconds: 61_000)
    let text = "waiting for 175 notifications and the events of 3, \(ReadableText.duration(milliseconds: 61_000)) at most"
    #expect(LoadPrinter("r", result).progress.hasSuffix(text))
    #expect(LoadPrinter("r", result).live(width: nil).last?.hasSuffix(text) == true)
  }

  /// What is typed, and what standard error must say of it.
  private static let mistakes: [([String], String)] = [
    (["--rate", "0"], "--rate: '0' is not allowed: it must be a whole number from 1"),
    (["--collapsing", "1.5"], "--collapsing: '1.5' is not allowed: it must be a share from 0 to 1"),
    (["--slow", "nan"], "--slow: 'nan' is not allowed"),
    (["--require", "p99"], "--require: 'p99' is not allowed: it must be MEASURE=BOUND"),
    (["--run", "A b"], "--run: 'A b' is not allowed"),
    (["--ramp", "30s", "--duration", "20s"], "--ramp must not be longer than --duration"),
    (["--rate", "1000000", "--duration", "1h"], "--rate makes 3600000000 requests"),
    (["--profile", "smok"], "--profile: smok cannot be read"),
    (["--sizes", ""], "--sizes"),
    (["--workers", "localhost:9464"], "--workers: 'localhost:9464' is not allowed: it must be a URL such as http://"),
  ]

  @Test func `a plan that cannot be carried out is refused by the flag and the rule`() async throws {
    for (flags, text) in Self.mistakes {
      let refused = try await Typed.refusal(["load", "--dry-run"] + flags)
      #expect(refused.code == .wrongUsage && refused.text.contains(text), "\(flags): \(refused.text)")
    }
    try await TestFolder.with { folder in
      let profile = try folder.write("bad.load", "devices = 5\nrat = 7\n")
      let unknown = try await Typed.refusal(["load", "--profile", profile, "--dry-run"])
      #expect(
        unknown.code == .wrongUsage && unknown.text.contains("bad.load:2: a profile has no key 'rat'") && unknown.text.contains("'rate'"))
      let wrong = try folder.write("wrong.load", "devices = 5\ndevices = 6\n")
      #expect(try await Typed.refusal(["load", "--profile", wrong, "--dry-run"]).code == .wrongUsage)
    }
  }

  @Test func `a cluster that is not there or not marked for load is not loaded`() async throws {
    let noDevices = try await Typed.refusal(["load", "--kafka", "127.0.0.1:1"])
    #expect(noDevices.code == .wrongUsage && noDevices.text.contains("give --fan-out"))
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let prefix = KafkaFixture.unique("load") + "."
      for topic in ["requests", "devices", "events"] { try kafka.embedded?.createTopic(prefix + topic, partitions: 2) }
      let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
      let flags = ["load", "--kafka", servers, "--topic-prefix", prefix, "--fan-out", "ws://127.0.0.1:1"]
      let refused = try await Typed.refusal(flags)
      #expect(refused.code == .wrongUsage && refused.text.contains("--for-load"), "it says: \(refused.text)")
      let other = try await Typed.refusal(flags + ["--production", "other"])
      #expect(other.code == .wrongUsage && other.text.contains("--production: the id of the cluster"), "it says: \(other.text)")
    }
  }

  @Test func `a report that cannot be written is told before the run`() async throws {
    let flags = ["--kafka", "127.0.0.1:1", "--fan-out", "ws://127.0.0.1:1", "--report", "/no/such/folder/a.html"]
    let refused = try await Typed.refusal(["load"] + flags)
    #expect(refused.code == .wrongUsage && refused.text.contains("--report: /no/such/folder/a.html cannot be written"))
  }

  @Test(.onlyInAll("it is load: a run keeps its schedule or not by the machine"))
  func `a full disk costs only the file that lies on it, and is told by the flag`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      let (page, numbers) = (
        carillon.folder.appendingPathComponent("load.html").path, carillon.folder.appendingPathComponent("load.json").path
      )
      let run = ["load", "--devices", "2", "--rate", "5", "--duration", "1s"]
      for (flags, wrong, kept) in [
        (["--report", "/dev/full", "--result", numbers], ["--report"], numbers),
        (["--report", page, "--result", "/dev/full"], ["--result"], page),
        (["--report", "/dev/full", "--result", "/dev/full"], ["--report", "--result"], nil),
      ] as [([String], [String], String?)] {
        let full = try await carillon.run(run + flags)
        #expect(full.status == 3 && full.output.contains("reach 100 %"), "it said: \(full.errors)")
        for flag in ["--report", "--result"] {
          let text = "\(flag): the report cannot be written: No space left on device"
          #expect(full.errors.contains(text) == wrong.contains(flag), "it said: \(full.errors)")
        }
        if let kept { #expect(try String(contentsOfFile: kept, encoding: .utf8).hasSuffix(kept == page ? "</html>\n" : "}\n")) }
      }
      try await up.stop()
    }
  }
}
