import Cryptography
import JSON
import Notifications
import TestSupport
import Testing

@testable import FanOut

/// How a device is told where its notifications' media are.
@Suite(.serialized) struct MediaLinkFrameTests {
  private static let hash = String(repeating: "ab", count: 32)
  private static let settings = MediaLinkSettings(base: "https://push.example.com", seconds: 600)

  private static func ask(_ lane: LaneFixture, _ frame: String, _ answer: String) async throws -> JSONValue? {
    let device = try await lane.connect()
    await lane.eventually("it is welcomed") { !$0.frames("welcome", at: device).isEmpty }
    await lane.send(frame, from: device)
    await lane.eventually("it is answered") { !$0.frames(answer, at: device).isEmpty }
    return await lane.frames(answer, at: device).first
  }

  @Test func aDeviceThatAsksGetsALinkOfItsOwn() async throws {
    try await LaneFixture.with({ $0.media = Self.settings }) { lane in
      let frame = #"{"type":"link","hash":"\#(Self.hash)","request":"r1"}"#
      let first = try #require(try await Self.ask(lane, frame, "linked"))
      let second = try #require(try await Self.ask(lane, frame, "linked"))
      #expect(first["request"] == "r1" && first["url"] != second["url"])
      let (path, parameters) = try MediaLinksTests.parts(try #require(first["url"]?.stringValue))
      #expect(path == "https://push.example.com/v1/media/\(Self.hash)")
      let verdict = MediaLinks(nil, InForce(KeyRing([KeyRing.Key([1, 2, 3])]))).judge(
        MediaHash(Self.hash)!, device: parameters["device"], expires: parameters["expires"], signature: parameters["signature"],
        now: try #require(first["expires"]?.integerValue) - 600)
      #expect(verdict == .good(seconds: 600))
    }
  }

  @Test func whatIsNoHashIsRefusedWithTheRule() async throws {
    try await LaneFixture.with({ $0.media = Self.settings }) { lane in
      let refused = try await Self.ask(lane, #"{"type":"link","hash":"../../etc","request":"r1"}"#, "refused")
      #expect(refused?["request"] == "r1" && refused?["reason"] == "BadFrame" && refused?["field"] == "hash")
    }
  }

  @Test func aClusterWithoutMediaSaysSo() async throws {
    try await LaneFixture.with { lane in
      let refused = try await Self.ask(lane, #"{"type":"link","hash":"\#(Self.hash)","request":"r1"}"#, "refused")
      #expect(refused?["reason"] == "UnknownMedia")
    }
  }
}
