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
      if let marker = Marker(bytes), marker.bytes != array { return "another marker" }
      if let stamp = RegistrationStamp(array), stamp.bytes != array { return "another registration" }
      if let gap = MailboxGap(array), gap.bytes != array { return "another gap" }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
