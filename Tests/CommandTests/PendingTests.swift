import Calendars
import Ingress
import JSON
import Notifications
import Testing

@testable import Command
@testable import Operations

/// `carillon pending`: what cancels all that waits for an application.
@Suite struct PendingTests {
  private static func entry(_ application: Name, _ target: Name, _ identifier: Name) throws -> PendingSchedule {
    let key = try #require(ScheduleKey(application: application, target: target, identifier: identifier))
    let newest = JournalReference(revision: Revision(timestamp: 1, partition: 0, offset: 1), id: NotificationID(high: 1, low: 1))
    let pending = ScheduleRecord.Pending(requested: 1, lifetime: 60, dueTimes: [], trigger: [], headers: [], payload: [])
    return PendingSchedule(key: key, record: ScheduleRecord(newest: newest, .pending(pending)), pending: pending)
  }

  private static func entries() throws -> [PendingSchedule] {
    try [
      entry("com.example.news", "user:bob", "a"), entry("com.example.shop", "user:ada", "a"), entry("com.example.shop", "user:ada", "b"),
      entry("com.example.shop", "user:bob", "a"), entry("com.example.bank", "user:ada", "a"),
    ]
  }

  @Test func `each application and target gets one cancel of all, which keeps every rule`() throws {
    let cancels = PendingCommand.cancels(of: try Self.entries())
    #expect(cancels.map(\.line) == [1, 2, 3, 4] && Set(cancels.map(\.id)).count == 4)
    #expect(cancels.map { Name(String(decoding: $0.key, as: UTF8.self)) } == ["user:bob", "user:ada", "user:bob", "user:ada"])
    var times = DueTimes()
    for cancel in cancels { #expect(try cancel.check(RequestLimits(), &times).warnings.isEmpty) }
  }

  @Test func `only one application's are canceled at once`() async throws {
    for words in [["--cancel"], ["--cancel", "--target", "user:ada"]] {
      #expect(try await Typed.refusal(["pending"] + words).text.contains("--cancel is about one application"), "\(words)")
    }
  }
}
