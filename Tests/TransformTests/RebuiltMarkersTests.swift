import Kafka
import Store
import Testing

@testable import Transform

struct RebuiltMarkersTests {
  private static let topics = (devices: "devices", requests: "requests")

  private static func all(_ markers: RebuiltMarkers, ends: [TopicPartition: Int64]) -> [MarkedPartition: Marker] {
    Dictionary(uniqueKeysWithValues: markers.all(topics, ends: ends))
  }

  @Test func `a marker has the end of what was read, and the timestamp of the last record below it`() {
    var markers = RebuiltMarkers()
    markers.incarnations = [TopicPartition("requests", 0): 3, TopicPartition("requests", 1): 1, TopicPartition("events", 0): 9]
    markers.note(TopicPartition("requests", 0), 4, 70)
    markers.note(TopicPartition("requests", 0), 6, 80)
    markers.note(TopicPartition("devices", 0), 2, 90)
    markers.note(TopicPartition("devices", 1), 2, 95)
    markers.note(TopicPartition("events", 0), 2, 99)
    // After the last record of requests 0 comes the end of a transaction; devices 1 was written to while it was read.
    let ends = [TopicPartition("requests", 0): Int64(8), TopicPartition("devices", 0): 5, TopicPartition("devices", 1): 2]
    #expect(
      Self.all(markers, ends: ends) == [
        .requests(0): Marker(offset: 8, timestamp: 80, incarnation: 3), .requests(1): Marker(offset: 0, timestamp: -1, incarnation: 1),
        .devices(0): Marker(offset: 5, timestamp: 90), .devices(1): Marker(offset: 3, timestamp: 95),
      ])
  }

  @Test func `a marker behind an unreadable stretch, or below the last record, has no timestamp`() {
    var markers = RebuiltMarkers()
    markers.incarnations = [TopicPartition("requests", 0): 0, TopicPartition("requests", 1): 0]
    markers.note(TopicPartition("requests", 0), 4, 70)
    markers.note(TopicPartition("requests", 0), 6, -1)
    markers.note(TopicPartition("requests", 1), 4, 70)
    let ends = [TopicPartition("requests", 0): Int64(7), TopicPartition("requests", 1): 4]
    #expect(
      Self.all(markers, ends: ends) == [
        .requests(0): Marker(offset: 7, timestamp: -1), .requests(1): Marker(offset: 4, timestamp: -1),
      ])
    #expect(markers.takeTimestamp(of: TopicPartition("requests", 1)) == 70)
    #expect(markers.takeTimestamp(of: TopicPartition("requests", 1)) == nil)
  }
}
