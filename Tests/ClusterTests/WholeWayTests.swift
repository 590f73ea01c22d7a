import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// What `whole_way.py` said, once for each broker: two tests judge the same run.
  actor WholeWay {
    static let shared = WholeWay()
    private var runs: [ClusterKafka: Task<[JSONValue], any Error>] = [:]

    func lines(on broker: ClusterKafka) async throws -> [JSONValue] {
      let run = runs[broker] ?? Task { try await Self.run(on: broker) }
      runs[broker] = run
      return try await run.value
    }

    private static func run(on broker: ClusterKafka) async throws -> [JSONValue] {
      try await ClusterFixture.with(broker) { cluster in
        // A machine that stands still costs the worker no partition, whose records would count twice.
        try await cluster.transform(["--session-timeout", "60s"])
        let fanOuts = [try await cluster.fanOut(["--window", "8"]), try await cluster.fanOut(["--window", "8"])]
        let way = try await cluster.client(
          client("whole_way.py"), fanOuts.flatMap { ["--devices-url", $0.devices] } + ClusterTests.contract + ["--window", "8"])
        let exit = try await way.exit(hangs: 3)
        if exit != .exited(0) { print(await cluster.logs()) }
        if way.lines.isEmpty { throw ClusterFailure("whole_way.py ended with \(exit): \(way.text)") }
        return way.lines
      }
    }
  }

  @Suite(.serialized, .inPython)
  struct WholeWayTests {
    @Test(arguments: ClusterKafka.ofForm)
    func thirdPartyClientsGoTheWholeWay(_ broker: ClusterKafka) async throws {
      let lines = try await WholeWay.shared.lines(on: broker)
      for line in lines where line["broken"] != nil { Issue.record("\(line.text)") }
      #expect(lines.filter { $0["kept"] != nil }.count == 15)
      #expect(lines.last?["result"]?.stringValue == "passed")
    }

    @Test(arguments: ClusterKafka.ofForm)
    func realRecordsKeepTheContract(_ broker: ClusterKafka) async throws {
      let lines = try await WholeWay.shared.lines(on: broker)
      let verdict = try #require(lines.first { $0["contract"] != nil })
      #expect(verdict["problems"]?.integerValue == 0, "\(verdict["first"]?.text ?? "")")
      let held = Set(verdict["held"]?.members?.map(\.key) ?? [])
      let events = [
        "addressed", "delivered", "response", "dismissed", "removed", "rejected", "collapsed", "evicted", "expired",
        "filtered", "unregistered", "registered", "settings-changed", "unregistered-device",
      ]
      let frames = [
        "hello", "welcome", "notify", "ack", "response", "accepted", "refused", "remove", "gap", "settings", "unregister",
      ]
      let wanted =
        ["eventHeaders", "journalHeaders", "deadLetterHeaders", "requestHeaders", "registration"] + events.map { "event." + $0 }
        + frames.map { "frame." + $0 }
      #expect(Set(wanted).subtracting(held) == [])
    }
  }
}
