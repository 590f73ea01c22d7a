import JSON
import Kafka
import Notifications
import Store
import TestSupport
import Testing

@testable import Operations

/// Times, offsets and counts in records that no program of ours writes.
@Suite struct ExtremeNumberTests {
  private static let id = NotificationID(high: 1, low: 2)
  private static let token = String(repeating: "ab", count: 32)

  private static func request(_ number: Int64, _ other: Int64) -> PublishedRequest {
    PublishedRequest(
      id: id, source: SourceCoordinates(topic: "r", partition: 0, offset: number, timestamp: other), target: "device:\(token)",
      application: "com.example", identifier: "order", isDerivedID: false, operation: "notify", end: number, broken: nil, origin: nil)
  }

  private static func event(_ value: JSONValue, at time: String, _ type: Outcome) -> Event? {
    var text = value.text
    let headers = [
      ("ce_specversion", "1.0"), ("ce_id", "e"), ("ce_type", type.cloudEventsType?.description ?? ""), ("ce_source", "/c"),
      ("ce_time", time),
      ("ce_subject", "\(id)"),
    ]
    return text.withUTF8 { try? Event(headers: headers.map { (name: $0.0, value: $0.1) }, value: UnsafeRawBufferPointer($0)) }
  }

  @Test func `no number in a request, an event or the journal ends an explanation`() throws {
    let value =
      #"{"device":"\#(Self.token)","worker":"w","source":{"topic":"r","partition":0,"offset":7,"timestamp":5},"devices":2,"at":3,"revision":"0000018bcfe568000000000300000000000000ff"}"#
    let variants = try ExtremeNumbers.variants(of: value)
    for (number, other) in zip(ExtremeNumbers.integers, ExtremeNumbers.integers.reversed()) {
      var timeline = Timeline(Self.id)
      timeline.add(Self.request(number, other))
      timeline.add(Self.request(other, number))
      for time in ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
        for variant in variants {
          for type in [Outcome.addressed, .delivered, .response] {
            guard let event = Self.event(variant, at: time, type) else { continue }
            timeline.add(event, at: SourceCoordinates(topic: "e", partition: 3, offset: number, timestamp: other))
          }
        }
      }
      for timestamp in ExtremeNumbers.integers {
        var writer = JournalWriter(partition: 0, incarnation: 0)
        let revision = Revision(timestamp: UInt64(bitPattern: number), partition: .max, offset: UInt64(bitPattern: other))
        writer.append(offset: max(0, number), timestamp: timestamp, JournalJudgement(.queued, revision: revision), now: other)
        let record = JournalRecord(worker: "w", incarnation: .max, judgedAt: timestamp)
        let place = SourceCoordinates(topic: "j", partition: 0, offset: number, timestamp: other)
        timeline.add(writer.withValue { JournalSteps(record, $0, place, of: timeline.records) })
        writer.withValue { bytes in
          try? record.forEachEntry(in: bytes, partition: 0) { entry in
            var fact = AuditFact(.request)
            (fact.time, fact.offset) = (Timestamp.bounded(number), max(0, other))
            var join = JournalJoin(expecting: 1, in: "/tmp")
            try? join.add(fact)
            AuditFact(record, at: RecordPlace(partition: 0, offset: number)).forEach(of: entry) { fact in _ = try? join.add(fact) }
            var count = 0
            #expect(throws: Never.self) { try join.join(AuditRules(now: number, written: other)) { _ in count += 1 } }
            #expect(count >= 1)
          }
        }
      }
      for now in ExtremeNumbers.integers { _ = timeline.explanation(now: now).steps.map(\.sincePublication) }
      _ = (timeline.published, timeline.mayBeReplaced)
    }
  }

  @Test func `a number that no integer holds is estimated as the nearest`() {
    #expect(Int64(saturating: .infinity) == .max && Int64(saturating: -.infinity) == .min && Int64(saturating: .nan) == 0)
    #expect(Int64(saturating: 9.3e18) == .max && Int64(saturating: -2.9) == -2)
    var counts = Population.Counts()
    (counts.keys, counts.entries) = (2, .max)
    #expect(counts.scaled(toKeys: .max).entries == .max && counts.scaled(toKeys: -1).entries == .max)
  }
}
