import JSON
import Notifications
import Testing

@testable import Transform

@Suite struct ReplaysTests {
  /// Whether a record at offset 100 of partition 3 repeats what was applied, where all below 50 is.
  private func isApplied(_ offset: Int64, partition: Int32 = 3, topic: String = "requests", _ why: Origin.Purpose = .replay) -> Bool {
    var writer = JSONWriter()
    Origin.write(
      cluster: "east", SourceCoordinates(topic: topic, partition: partition, offset: offset, timestamp: 7), why: why, to: &writer)
    return writer.withUnsafeBytes { origin in
      Array("requests".utf8).withUnsafeBytes { topic in
        var headers = RequestHeaders()
        headers.take(name: "carillon-origin", value: origin)
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        let position = SourcePosition(partition: 3, offset: 100, timestamp: 8)
        let record = RequestRecord(key: nothing, value: nothing, headers: headers, topic: topic, position: position)
        return RequestEnvelope(record).repeatsWhatWasApplied(below: 50)
      }
    }
  }

  @Test func belowTheMarkerARequestWasApplied() {
    #expect(isApplied(0) && isApplied(49))
    #expect(!isApplied(50) && !isApplied(99))
  }

  @Test func newWorkIsJudged() { #expect(!isApplied(0, .redrive)) }

  @Test func anOriginThatDoesNotCountRepeatsNothing() {
    #expect(!isApplied(0, partition: 2) && !isApplied(0, topic: "other"))
  }
}
