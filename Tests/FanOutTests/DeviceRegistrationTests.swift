import HTTP
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing

@testable import FanOut

/// What becomes of a device's registration on a lane.
@Suite(.serialized) struct DeviceRegistrationTests {
  /// Kafka has the record that forgets the device, and a transform worker has applied it; the lane has not heard of either, and looks what
  /// Redis has of its sessions.
  @Test func aDeviceThatAsksToBeForgottenIsNotToldToComeBack() async throws {
    try await LaneFixture.with { lane in
      try await RedisProbe.with(lane.redis.address) { redis in
        let (token, other) = (LaneFixture.token(), LaneFixture.token())
        let device = try await lane.connect(token)
        await lane.eventually("it is welcomed") { !$0.frames("welcome", at: device).isEmpty }
        let key = try await lane.deviceKey(token, in: redis)
        // What Redis keeps of a device that is forgotten: it is made for another one, until it is a later word than that of the first.
        for _ in 0..<3 {
          let another = try await lane.connect(other)
          await lane.eventually("the other one is welcomed") { !$0.frames("welcome", at: another).isEmpty }
          await lane.send(#"{"type":"unregister","request":"u0"}"#, from: another)
          await lane.eventually("the other one is forgotten") { $0.end(of: another)?.code.rawValue == CloseCode.unregistered.rawValue }
        }
        let forgotten = try #require(
          try await redis.command("DUMP", .text(try await lane.deviceKey(other, in: redis))).bytes)

        try lane.kafka.embedded?.setRoundTrip(milliseconds: 4_000)
        await lane.send(#"{"type":"unregister","request":"u1"}"#, from: device)
        try await redis.command("RESTORE", .text(key), "0", .bytes(forgotten), "REPLACE")
        try await redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await lane.eventually("its session has ended") { $0.end(of: device) != nil }
        #expect(await lane.end(of: device)?.code.rawValue == CloseCode.unregistered.rawValue)
        #expect(await lane.frames("accepted", at: device).map { $0["request"]?.stringValue } == ["u1"])
        try lane.kafka.embedded?.setRoundTrip(milliseconds: 0)
      }
    }
  }
}
