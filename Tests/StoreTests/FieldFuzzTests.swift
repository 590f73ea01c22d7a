import JSON
import Notifications
import TestSupport
import Testing

@testable import Store

@Suite struct FieldFuzzTests {
  @Test func whatRedisKeepsIsReadAsItWasWritten() {
    let corpus = [
      Presence(partition: 3, generation: .max).bytes, Owner(user: 1, since: 2, application: 3).bytes,
      Marker(offset: 5, timestamp: -1).bytes, RegistrationStamp(digest: 4, partition: 2, offset: 9).bytes,
    ]
    let failures = Fuzz("fields in Redis", corpus: corpus).run { bytes, _ in
      let array = Array(bytes)
      if let presence = Presence(array), presence.bytes != array { return "another presence" }
      if let owner = Owner(array), owner.bytes != array { return "another owner" }
      if let owner = Owner(field: array), owner.bytes != Array(array.prefix(24)) { return "another owner of a field" }
      if let marker = Marker(bytes), marker.bytes != array { return "another marker" }
      if let stamp = RegistrationStamp(array), stamp.bytes != array { return "another registration" }
      if let gap = MailboxGap(array), gap.bytes != array { return "another gap" }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func `no number in Redis ends who reads a marker or a worker's report`() throws {
    for number in ExtremeNumbers.integers {
      for incarnation in [0, .max] as [UInt32] {
        let bytes = Marker(offset: number, timestamp: number, incarnation: incarnation).bytes
        let marker = bytes.withUnsafeBytes { Marker($0) }
        #expect((marker != nil) == ((0...1 << 62).contains(number) && incarnation < .max))
        #expect((marker?.readingOffset ?? 0) >= 0)
      }
    }
    var report = WorkerReport(name: "w", roles: ["fan-out"], version: "1", started: 5, written: 6)
    report.laneLags = [.init(lane: "l", partition: 7, records: 8, milliseconds: 9)]
    (report.unready, report.unreadyCount) = ([.init(name: "redis", lane: "l", reason: "r", since: 7)], 1)
    for variant in try ExtremeNumbers.variants(of: String(decoding: report.bytes, as: UTF8.self)) {
      guard let read = WorkerReport(Array(variant.text.utf8)) else { continue }
      #expect([read.started, read.written].allSatisfy { Timestamp.bounded($0) == $0 })
      #expect(read.laneLags.allSatisfy { $0.records >= 0 && $0.partition >= 0 })
    }
  }
}
