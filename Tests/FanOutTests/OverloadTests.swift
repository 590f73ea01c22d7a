import HTTP
import Kafka
import TestSupport
import Testing

@testable import FanOut

/// What a lane does at its bounds, through its sockets.
@Suite(.serialized) struct OverloadTests {
  @Test func aStormOfHellosEntersAtTheCeilingAndNobodyIsLost() async throws {
    try await LaneFixture.with({
      $0.limits.reconnectsPerSecond = 100
      $0.limits.helloSeconds = 60
    }) { lane in
      await withTaskGroup { group in
        for _ in 0..<300 { group.addTask { _ = try? await lane.connect() } }
      }
      await lane.eventually("all are welcomed") { $0.count("welcome") == 300 }
      if isComplete {
        let times = await lane.welcomes.sorted()
        #expect((times.last ?? 0) - (times.first ?? 0) >= 500)
      }
      #expect(lane.metric("carillon_fanout_sessions_total") == 300)
      #expect(lane.metric("carillon_fanout_waiting_hellos") == 0)
    }
  }

  @Test func hellosBeyondTheQueueAreToldWhenToComeBack() async throws {
    try await LaneFixture.with({
      $0.limits.reconnectsPerSecond = 1
      $0.limits.helloSeconds = 20
    }) { lane in
      // Ten may wait, for ten seconds; the connections are made first, so that the hellos come together.
      let silent = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<60 { group.addTask { try await lane.connect(saysHello: false) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      await lane.sayHello(silent)
      await lane.eventually("each is welcomed or told to go away") { $0.count("welcome") + $0.count("goaway") == 60 }
      #expect(await lane.count("goaway") >= 30)
      await lane.eventually("who is told to go away has ended") { $0.ends.count == $0.count("goaway") }
      let ends = await lane.ends
      #expect(ends.allSatisfy { $0.code == 4009 })
      let back = ends.map(\.comesBack).sorted()
      let most = back.indices.map { start in back[start...].prefix { $0 < back[start] + 1000 }.count }.max() ?? 0
      // Four times the ceiling, for what this machine delays: told the same they would be forty.
      #expect(most <= 20)
      #expect(Int(lane.limited(.hellos)) == ends.count)
    }
  }

  @Test func upgradesBeyondTheQueueAreToldWhenToComeBack() async throws {
    try await LaneFixture.with({
      $0.limits.reconnectsPerSecond = 1
      $0.limits.helloSeconds = 10
    }) { lane in
      // There is room again when those who wait have waited too long, as on a machine that stands still.
      for _ in 0..<200 {
        do throws(WebSocketClientError) {
          _ = try await lane.connect()
        } catch {
          guard case .refused(_, status: 503, _, let seconds?) = error else {
            Issue.record("\(error)")
            return
          }
          #expect((1...60).contains(seconds))
          return
        }
      }
      Issue.record("there was room")
    }
  }

  @Test func whoFloodsFramesIsClosedAndWhoAnswersIsNot() async throws {
    try await LaneFixture.with({ $0.limits.framesPerSecond = 50 }) { lane in
      let quiet = try await lane.connect()
      let loud = try await lane.connect()
      await lane.eventually("both are welcomed") { $0.count("welcome") == 2 }
      await lane.send(#"{"type":"ack","deliveries":[1]}"#, times: 400, from: loud)
      await lane.eventually("the loud one is closed") { $0.end(of: loud)?.code.rawValue == 4012 }
      #expect(await lane.end(of: quiet) == nil)
      #expect(lane.limited(.frames) == 1)
    }
  }

  @Test func whoFloodsChangesIsClosed() async throws {
    try await LaneFixture.with { lane in
      let device = try await lane.connect()
      await lane.eventually("it is welcomed") { $0.count("welcome") == 1 }
      try lane.kafka.embedded?.takeDown()
      for number in 0..<20 {
        await lane.send(#"{"type":"settings","request":"\#(number)","locale":"de_\#(number)"}"#, from: device)
      }
      await lane.eventually("it is closed") { $0.end(of: device)?.code.rawValue == 4012 }
      #expect(lane.limited(.changes) == 1)
      try lane.kafka.embedded?.bringUp()
    }
  }

  @Test func connectionsBeyondAnAddressesShareAreCounted() async throws {
    try await LaneFixture.with({ $0.limits.connectionsPerAddress = 2 }) { lane in
      _ = try await lane.connect()
      _ = try await lane.connect()
      do throws(WebSocketClientError) {
        _ = try await lane.connect()
        Issue.record("there was room")
      } catch {
        guard case .refused(_, status: 429, _, _?) = error else {
          Issue.record("\(error)")
          return
        }
      }
      await lane.eventually("it is counted") { $0.limited(.addressConnections) == 1 }
    }
  }

  @Test func aKafkaThatIsAwayHoldsBackOnlyNewRegistrations() async throws {
    try await LaneFixture.with({ $0.kafka = $0.kafka.merging(["message.timeout.ms": "600000"]) }) { lane in
      let known = LaneFixture.token()
      _ = try await lane.connect(known)
      await lane.eventually("it is registered") { $0.count("welcome") == 1 }
      try lane.kafka.embedded?.takeDown()
      // More than may be worked on at a time, each waiting for Kafka.
      await withTaskGroup { group in
        for _ in 0..<300 { group.addTask { _ = try? await lane.connect() } }
      }
      let again = try await lane.connect(known)
      await lane.eventually("the known one enters") { !$0.frames("welcome", at: again).isEmpty }
      #expect(await lane.count("welcome") == 2)
      try lane.kafka.embedded?.bringUp()
      await lane.eventually("the others enter when it is back") { $0.count("welcome") == 302 }
    }
  }
}
