import JSON
import TestSupport
import Testing

@testable import Notifications

/// Numbers in frames and records that no program of ours writes.
@Suite struct ExtremeNumberTests {
  @Test func `no number ends who reads a frame, in either direction`() throws {
    for written in try FrameTests.written() {
      for variant in try ExtremeNumbers.variants(of: written.text) {
        try? withText(variant.text) { bytes throws(DeviceFrameError) in
          if case .ack(let ack) = try DeviceFrame(bytes) {
            ack.forEachDelivery { #expect($0 <= FrameLimits.largestDelivery) }
            ack.forEachDropped { number, _ in #expect(number <= FrameLimits.largestDelivery) }
          }
        }
        guard case .goaway(let frame) = try? withText(variant.text, { bytes throws(DeviceFrameError) in try ServerFrame(bytes) }) else {
          continue
        }
        for jitter in [0, 0.5, 1] {
          for code in CloseCode.allCases {
            for attempt in [0, 1, .max] {
              let wait = code.reconnection.wait(attempt: attempt, told: frame.reconnectAfterMs, jitter: jitter)
              #expect(wait.map { $0 >= 0 } ?? true)
            }
          }
        }
      }
    }
  }

  @Test func `no time of a record lies outside 1970 to 9999`() {
    for timestamp in ExtremeNumbers.integers {
      for number in ExtremeNumbers.integers {
        let position = SourcePosition(partition: Int32(truncatingIfNeeded: number), offset: number, timestamp: timestamp)
        #expect(position.timestamp == Timestamp.bounded(timestamp) && position.offset >= 0 && position.partition >= 0)
        #expect(Timestamp.parse(Timestamp.text(timestamp)) == position.timestamp)
        #expect(Revision(position).timestamp == UInt64(position.timestamp))
      }
    }
  }

  @Test func `no number in the stops of an application ends who reads them`() throws {
    let texts = [
      #"{"state":"stopped","stops":[{"from":5,"to":7,"by":"ada"},{"from":9,"by":"ada"}]}"#,
      #"{"state":"started","stops":[{"from":5,"to":7,"by":"ada"},{"from":9,"by":"ada"}]}"#,
    ]
    let written = try #require(ApplicationStops().value(.stop(by: "ada", reason: "prices"), forgettingBefore: 0))
    for text in texts + [String(decoding: written, as: UTF8.self)] {
      for variant in try ExtremeNumbers.variants(of: text) {
        for timestamp in ExtremeNumbers.integers {
          guard let stops = try? withText(variant.text, { bytes throws(FieldError) in try ApplicationStops(bytes, timestamp: timestamp) })
          else { continue }
          for time in ExtremeNumbers.integers { _ = stops.ending(time) }
        }
      }
    }
  }
}
