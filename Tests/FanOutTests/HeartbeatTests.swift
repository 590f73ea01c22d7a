import JSON
import Notifications
import TestSupport
import Testing

@testable import FanOut

/// Heartbeats: what a device sees of a connection that stands, where it cannot see pings.
@Suite struct HeartbeatTests {
  @Test func `a device that asks for heartbeats gets them as long as it is connected, and no other device gets any`() async throws {
    try await LaneFixture.with({ $0.limits.pingSeconds = 2 }) { lane in
      let silent = try await lane.connect()
      var asking = 0
      // A machine that stands still for ten seconds ends a connection, too.
      repeat {
        asking = try await lane.connect(saysHello: false)
        let hello = #"{"type":"hello","device":"\#(LaneFixture.token())","application":"com.example.shop","heartbeat":true}"#
        await lane.send(hello, from: asking)
        let device = asking
        await lane.eventually("it gets heartbeats, or has ended") {
          $0.frames("heartbeat", at: device).count >= 3 || $0.end(of: device) != nil
        }
      } while await lane.frames("heartbeat", at: asking).count < 3
      #expect(await lane.frames("heartbeat", at: asking).count >= 3)
      #expect(await lane.frames("welcome", at: asking).first?["pingSeconds"] == 2)
      #expect(await lane.frames("heartbeat", at: silent).isEmpty)
    }
  }

  @Test func `a device that does not answer pings is told so by the code of the protocol`() async throws {
    try await LaneFixture.with({ $0.limits.pingSeconds = 1 }) { lane in
      let port = await lane.port
      try await withTaskExecutorPreference(BlockingThreads.shared) {
        let socket = try FrameFloodTests.connect(port)
        try socket.send(FrameFloodTests.text(#"{"type":"hello","device":"\#(LaneFixture.token())","application":"com.example.shop"}"#))
        #expect(try FrameFloodTests.closeCode(socket) == 4006)
      }
    }
  }

  @Test func `each session has one turn in a period, as long as it is there`() {
    var wheel = SessionWheel(periodSeconds: 7)
    let all = (1...100).map { UInt64($0) }
    for generation in all { wheel.add(generation) }
    func turns(from second: UInt32, isOver: (UInt64) -> Bool = { _ in false }) -> [UInt64] {
      (second..<second + 7).flatMap { wheel.turn(at: $0, isOver: isOver) }.sorted()
    }
    for second in [0, 7, 700] as [UInt32] { #expect(turns(from: second) == all) }
    #expect(turns(from: 3) { $0 > 10 } == Array(all.prefix(10)))
    #expect(turns(from: 4) == Array(all.prefix(10)))
  }
}
