import Foundation
import JSON
import Kafka
import Notifications
import Operations
import TestSupport
import Testing
import Worker

@testable import Command

/// What a process of a load run of several answers when it cannot begin or take part.
@Suite struct SharedLoadTests {
  private static let up = ["up", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]

  @Test func `flags that the first process decides are refused with --join`() async throws {
    for flags in [
      ["--rate", "5"], ["--run", "a"], ["--profile", "smoke"], ["--processes", "2"], ["--report", "a.html"], ["--find-capacity"],
    ] {
      let refused = try await Typed.refusal(["load", "--join", "big"] + flags)
      let text = "\(flags[0]) cannot be combined with --join: the first process has the plan of the run, and reports for all processes"
      #expect(refused.code == .wrongUsage && refused.text.contains(text), "\(flags): \(refused.text)")
    }
    let variable = try await Typed.refusal(["load", "--join", "big"], ["CARILLON_LOAD_RATE": "5"])
    #expect(variable.code == .wrongUsage && variable.text.contains("CARILLON_LOAD_RATE cannot be combined with --join"))
  }

  @Test func `a start that failed always says why`() {
    func text(_ slow: [Name], _ missing: Int) -> String {
      "\(SharedRunText.failure(.notReady(slow, missing: missing, waited: 600_000), "big"))"
    }
    #expect(text([], 2).hasSuffix(": 2 processes did not join"))
    #expect(text(["a", "b"], 0).hasSuffix(": not connected: a, b"))
    #expect(text([], 0).hasSuffix(": one of them has not been heard since all were connected"))
  }

  @Test(.onlyInAll("it is load of several processes, of which ClusterTests/SharedLoadTests have a run"))
  func `a run that is absent, under way, incomplete, removed or over says so by the flag and the rule`()
    async throws
  {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(Self.up)
      _ = try await up.firstLine()
      let first = ["load", "--devices", "4", "--rate", "4", "--processes", "2"]
      let absent = try await carillon.run(["load", "--join", "alone", "--wait", "1s"])
      #expect(
        absent.status == 3 && absent.errors.contains("--join: no process has begun a run alone with --processes in 1 s (--wait)"),
        "it said: \(absent.errors)")

      let alone = try await carillon.run(first + ["--run", "alone", "--wait", "1s"])
      #expect(
        alone.status == 3 && alone.errors.contains("--processes: not all were ready within 1 s (--wait): 1 process did not join"),
        "it said: \(alone.errors)")
      let over = try await carillon.run(["load", "--join", "alone"])
      #expect(over.status == 2 && over.errors.contains("--join: run alone is over"), "it said: \(over.errors)")

      let waiting = try carillon.start(first + ["--run", "waits"])
      try await waiting.untilErrors(contain: "ready, and waiting for the start")
      let second = try await carillon.run(first + ["--run", "waits"])
      #expect(second.status == 2 && second.errors.contains("--run: "), "it said: \(second.errors)")
      let single = try await carillon.run(["load", "--run", "waits"])
      #expect(
        single.status == 2 && single.errors.contains("--run: a run waits of several processes has begun"), "it said: \(single.errors)")
      let clean = try await carillon.run(["load", "clean", "waits"])
      #expect(clean.status == 0, "it said: \(clean.errors)")
      let removed = try await waiting.result()
      #expect(
        removed.status == 1 && removed.errors.contains("run waits was ended: it was removed by 'carillon load clean'"),
        "it said: \(removed.errors)")

      // The name of a run that is over, and that of a removed one, are free.
      for name in ["alone", "waits"] {
        let again = try await carillon.run(first + ["--run", name, "--wait", "1s"])
        #expect(again.status == 3 && again.errors.contains("1 process did not join"), "it said: \(again.errors)")
      }
      try await up.stop()
    }
  }

  @Test(.onlyInAll("it is load of several processes, of which ClusterTests/SharedLoadTests have a run"))
  func `a plan of another version or one that breaks a rule is refused, and garbage is ignored`()
    async throws
  {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(Self.up)
      let servers = try #require(try JSONValue(parsing: try await up.firstLine())["kafka"]?.stringValue)
      let kafka = try KafkaFixture(at: KafkaConfiguration(bootstrapServers: [servers], clientID: "test"))
      func write(_ key: String, _ value: String) async throws {
        try await kafka.publish([TestRecord(key: key, value)], to: "notifications.load")
      }
      let id = "00000000000000ab"
      try await write("later/plan/\(id)", #"{"version":7,"run":"\#(id)"}"#)
      let later = try await carillon.run(["load", "--join", "later"])
      #expect(
        later.status == 2 && later.errors.contains("--join: the plan of run later has version 7, and this program knows version 1"),
        "it said: \(later.errors)")
      let taken = try await carillon.run(["load", "--run", "later", "--processes", "2"])
      #expect(taken.status == 2 && taken.errors.contains("'carillon load clean later'"), "it said: \(taken.errors)")

      let members = #""version":1,"run":"\#(id)","process":"\#(id)","name":"x/1","processes":2,"pulseMs":1000,"pulseLimit":10"#
      for (name, plan, text) in [
        ("odd", "rat = 5", "has no key 'rat'"), ("huge", "rate = 0", "'0' is not allowed"),
        ("tiny", "devices = 2", "--processes must not be more than the people"),
      ] {
        try await write("\(name)/plan/\(id)", "{\(members),\"plan\":\"\(plan)\"}")
        let refused = try await carillon.run(["load", "--join", name])
        #expect(
          refused.status == 2 && refused.errors.contains("--join: the plan of run \(name) cannot be carried out"), "\(refused.errors)")
        #expect(refused.errors.contains(text), "it said: \(refused.errors)")
      }

      let first = try carillon.start(["load", "--devices", "4", "--rate", "4", "--processes", "2", "--run", "calm"])
      try await first.untilErrors(contain: "ready, and waiting for the start")
      try await write("calm/numbers/\(id)", "garbage")
      try await first.untilErrors(contain: "has a record of this run that cannot be read; it is ignored")
      first.signal(SIGINT)
      let ended = try await first.result()
      #expect(ended.status == 1 && ended.errors.contains("run calm was ended before its start"), "it said: \(ended.errors)")
      await kafka.close()
      try await up.stop()
    }
  }

  private static func start(_ name: String, _ flags: [String], _ carillon: CarillonCommand) async throws -> (RunningCommand, RunningCommand)
  {
    let load = ["load", "--run", name, "--processes", "2", "--devices", "8", "--rate", "8", "--duration", "10m"]
    let (first, second) = (try carillon.start(load + flags), try carillon.start(["load", "--join", name]))
    for process in [first, second] { try await process.untilErrors(contain: "publishing from") }
    // The start is still seconds away, and both have the same. With JSON the first says nothing of its progress.
    await eventually("it publishes: \(second.errorsSoFar)") { second.errorsSoFar.contains(/[1-9][0-9]+ of [0-9]+ requests published/) }
    return (first, second)
  }

  @Test(.onlyInAll("it is load of several processes, of which ClusterTests/SharedLoadTests have a run"))
  func `after the end of a killed first process the others unregister their devices and say why`()
    async throws
  {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(Self.up)
      _ = try await up.firstLine()
      let (first, second) = try await Self.start("headless", ["--silence", "30s"], carillon)
      first.signal(SIGKILL)
      let ended = try await second.result()
      #expect(ended.status == 1 && ended.errors.contains("the first process of run headless is silent"), "it said: \(ended.errors)")
      let taken = try await carillon.run(["load", "--run", "headless", "--processes", "2"])
      #expect(taken.status == 2, "it said: \(taken.errors)")
      let clean = try await carillon.run(["load", "clean", "headless"])
      #expect(clean.status == 0 && clean.errors.contains("4 devices unregistered"), "only those of the first are left: \(clean.errors)")
      try await up.stop()
    }
  }

  @Test(.onlyInAll("it is load of several processes, of which ClusterTests/SharedLoadTests have a run"))
  func `a signal at the first process ends all shares, and it reports what there is`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(Self.up)
      _ = try await up.firstLine()
      let (first, second) = try await Self.start("short", ["--json"], carillon)
      first.signal(SIGINT)
      let (ended, other) = (try await first.result(), try await second.result())
      #expect(ended.status == 1 && other.status == 1, "they said: \(ended.errors)\n\(other.errors)")
      let report = try JSONValue(parsing: try #require(ended.lines.last))
      let published = (report["processes"]?.elements ?? []).compactMap { $0["published"]?.integerValue }
      #expect(published.count == 2 && published.allSatisfy { $0 > 0 } && report["published"]?.integerValue == published.reduce(0, +))
      #expect((report["processes"]?.elements ?? []).allSatisfy { $0["gap"] == .null })
      let clean = try await carillon.run(["load", "clean", "short"])
      #expect(clean.errors.contains("no device of a run short is registered"), "it said: \(clean.errors)")
      try await up.stop()
    }
  }

  @Test func `without the topic for load several processes are refused, also on a cluster whose id was given`() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let prefix = KafkaFixture.unique("load") + "."
      for topic in ["requests", "devices", "events"] { try kafka.embedded?.createTopic(prefix + topic, partitions: 2) }
      let id = try #require(try await kafka.admin.describeCluster().id)
      let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
      let flags = ["--kafka", servers, "--topic-prefix", prefix, "--fan-out", "ws://127.0.0.1:1", "--production", id]
      for part in [["--processes", "2"], ["--join", "big"]] {
        let refused = try await Typed.refusal(["load"] + part + flags)
        #expect(
          refused.code == .wrongUsage && refused.text.contains("--processes and --join need the topic \(prefix)load"),
          "it says: \(refused.text)")
      }
    }
  }
}
