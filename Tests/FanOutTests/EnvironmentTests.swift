import HTTP
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import FanOut

/// Which devices a cluster of one environment serves.
@Suite(.serialized) struct EnvironmentTests {
  private static func hello(_ environment: String?) -> String {
    let member = environment.map { #","environment":"\#($0)""# } ?? ""
    return #"{"type":"hello","device":"\#(LaneFixture.token())","application":"com.example.shop"\#(member)}"#
  }

  @Test(arguments: DeviceEnvironment.allCases)
  func `a device of the other environment is refused for good, and one that tells none is served`(_ own: DeviceEnvironment) async throws {
    try await LaneFixture.with({ $0.environment = own }) { lane in
      for environment in [nil] + DeviceEnvironment.allCases {
        let device = try await lane.connect(saysHello: false)
        await lane.send(Self.hello(environment?.rawValue), from: device)
        if environment == nil || environment == own {
          await lane.eventually("it is welcomed") { !$0.frames("welcome", at: device).isEmpty }
        } else {
          await lane.eventually("it is closed") { $0.end(of: device)?.code.rawValue == CloseCode.wrongEnvironment.rawValue }
          #expect(await lane.frames("welcome", at: device).isEmpty)
        }
      }
      let registered = try await lane.kafka.admin.ends(of: [TopicPartition(lane.topics.devices, 0), TopicPartition(lane.topics.devices, 1)])
      #expect(registered.values.reduce(0) { $0 + $1.count } == 2, "a refused device is not registered")
      #expect(lane.metric(#"carillon_fanout_closed_total{code="wrong_environment"}"#) == 1)
    }
    #expect(CloseCode.wrongEnvironment.reconnection == .never)
  }
}
