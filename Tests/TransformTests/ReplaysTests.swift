import JSON
import Notifications
import Testing

@testable import Transform

@Suite struct ReplaysTests {
  private let replays = Replays(cluster: "east")

  /// What is done with a record at offset 100 of partition 3 whose origin is this, where all below 50 is applied.
  private func answer(
    _ cluster: String, _ offset: Int64, partition: Int32 = 3, topic: String = "requests", _ why: Origin.Purpose = .replay
  ) -> String {
    var writer = JSONWriter()
    Origin.write(
      cluster: cluster, SourceCoordinates(topic: topic, partition: partition, offset: offset, timestamp: 7), why: why, to: &writer)
    return writer.withUnsafeBytes { origin in
      Array("requests".utf8).withUnsafeBytes { topic in
        var headers = RequestHeaders()
        headers.take(name: "carillon-origin", value: origin)
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        let position = SourcePosition(partition: 3, offset: 100, timestamp: 8)
        let record = RequestRecord(key: nothing, value: nothing, headers: headers, topic: topic, position: position)
        return switch replays.answer(RequestEnvelope(record), at: position, marker: 50) {
        case .judge: "judge"
        case .applied: "applied"
        case .reject(let rejection): "\(rejection.field)"
        }
      }
    }
  }

  @Test func belowTheMarkerARequestWasApplied() {
    #expect(answer("east", 0) == "applied")
    #expect(answer("east", 49) == "applied")
    #expect(answer("east", 50) == "judge")
    #expect(answer("east", 99) == "judge")
  }

  @Test func newWorkAndRequestsOfOtherClustersAreJudged() {
    #expect(answer("east", 0, .redrive) == "judge")
    #expect(answer("west", 0) == "judge")
    #expect(answer("west", 500, partition: 1, topic: "other") == "judge")
  }

  @Test func aReplayThatLiesElsewhereThanItsFirstRecordIsRejected() {
    #expect(answer("east", 0, partition: 2) == "carillon-origin")
    #expect(answer("east", 0, topic: "other") == "carillon-origin")
    #expect(answer("east", 100) == "carillon-origin")
    #expect(answer("east", .max) == "carillon-origin")
  }
}
