import Notifications
import Synchronization
import TestSupport
import Testing

@testable import FanOut

/// Frames that a device sends without a bound, through sockets that no client of ours would write to so.
@Suite(.serialized) struct FrameFloodTests {
  enum Kind: CaseIterable {
    case pings, pongs, emptyFragments, texts

    /// The first frame, and those that follow it: masked with zeros, so as they are.
    var frames: (first: [UInt8], next: [UInt8]) {
      switch self {
      case .pings: ([0x89, 0x80, 0, 0, 0, 0], [0x89, 0x80, 0, 0, 0, 0])
      case .pongs: ([0x8A, 0x80, 0, 0, 0, 0], [0x8A, 0x80, 0, 0, 0, 0])
      case .emptyFragments: ([0x01, 0x80, 0, 0, 0, 0], [0x00, 0x80, 0, 0, 0, 0])
      case .texts: (FrameFloodTests.text(#"{"type":"x"}"#), FrameFloodTests.text(#"{"type":"x"}"#))
      }
    }

    func flood(_ count: Int) -> [UInt8] { frames.first + (1..<count).flatMap { _ in frames.next } }
  }

  static func text(_ text: String) -> [UInt8] { [0x81, 0x80 | UInt8(text.utf8.count), 0, 0, 0, 0] + Array(text.utf8) }

  /// Connects and upgrades, without a hello.
  static func connect(_ port: Int) throws -> RawSocket {
    let socket = try RawSocket(port: port)
    let key = "dGhlIHNhbXBsZSBub25jZQ=="
    try socket.send(
      "GET \(DeviceProtocol.path) HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        + "Sec-WebSocket-Key: \(key)\r\nSec-WebSocket-Protocol: \(DeviceProtocol.subprotocol)\r\n\r\n")
    _ = try socket.read(through: "\r\n\r\n")
    return socket
  }

  /// The code of the close frame that the lane ends with, behind pongs without a payload and short texts.
  static func closeCode(_ socket: RawSocket) throws -> Int? {
    while true {
      let head = try socket.read(exactly: 2)
      guard head.count == 2 else { return nil }
      let length = head[1] == 126 ? try socket.read(exactly: 2).reduce(0) { $0 << 8 | Int($1) } : Int(head[1])
      let payload = try socket.read(exactly: length)
      if head[0] == 0x88 { return payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil }
    }
  }

  @Test(arguments: Kind.allCases) func aConnectionWithoutAHelloMaySendAHundredFrames(_ kind: Kind) async throws {
    try await LaneFixture.with { lane in
      let port = await lane.port
      try await withTaskExecutorPreference(BlockingThreads.shared) {
        let socket = try Self.connect(port)
        try socket.send(kind.flood(100))
        if kind == .emptyFragments { try socket.send([0x80, 0x80, 0, 0, 0, 0]) } else { try socket.send(kind.frames.next) }
        #expect(try Self.closeCode(socket) == 4012)
      }
      await lane.eventually("its end is counted") { $0.metric(#"carillon_fanout_ended_total{cause="too_many_frames"}"#) == 1 }
      #expect(lane.metric(#"carillon_fanout_closed_total{code="too_many_frames"}"#) == 1)
      #expect(lane.limited(.frames) == 1)
    }
  }

  @Test(arguments: Kind.allCases) func aSessionsFramesOfEveryKindAreBounded(_ kind: Kind) async throws {
    try await LaneFixture.with({ $0.limits.framesPerSecond = 200 }) { lane in
      let port = await lane.port
      try await withTaskExecutorPreference(BlockingThreads.shared) {
        let socket = try Self.connect(port)
        try socket.send(Kind.pings.flood(99))
        try socket.send(Self.text(#"{"type":"hello","device":"\#(LaneFixture.token())","application":"com.example.shop"}"#))
        await lane.eventually("it is welcomed") { $0.metric("carillon_fanout_sessions_total") == 1 }
        // Not so many in two seconds, but for a machine that takes so long to send them.
        try? socket.send(kind.flood(20_000))
        #expect(try Self.closeCode(socket) == 4012)
      }
      await lane.eventually("it is counted") { $0.limited(.frames) == 1 }
    }
  }

  private final class Flood: Sendable {
    let isOver = Atomic(false)
  }

  @Test func floodsLeaveTheOtherDevicesTheirLatency() async throws {
    try await LaneFixture.with { lane in
      let port = await lane.port
      let flood = Flood()
      try await withThrowingTaskGroup { group in
        defer { flood.isOver.store(true, ordering: .relaxed) }
        for number in 0..<6 {
          group.addTask(executorPreference: BlockingThreads.shared) {
            let frames = Kind.allCases[number % 3].flood(10_000)
            while !flood.isOver.load(ordering: .relaxed) {
              guard let socket = try? Self.connect(port) else { continue }
              while !flood.isOver.load(ordering: .relaxed), (try? socket.send(frames)) != nil {}
            }
          }
        }
        await lane.eventually("the floods are on") { $0.limited(.frames) >= 6 }
        // One after the other: each connection is a few turns of the lane.
        for _ in 0..<50 { _ = try await lane.connect() }
        await lane.eventually("all are welcomed") { $0.count("welcome") == 50 }
      }
    }
  }
}
