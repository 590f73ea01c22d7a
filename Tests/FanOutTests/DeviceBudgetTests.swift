import Notifications
import TestSupport
import Testing

@testable import FanOut

/// What devices may do, and what they have opened: as values.
@Suite struct DeviceBudgetTests {
  @Test func `a device does so much in a minute, whatever others do, and as much in the next`() {
    var budget = DeviceBudget(perMinute: 60)
    let taken = (0..<100 as Range<UInt64>).count { budget.takes(1, at: 60_000 + $0) }
    #expect(taken == 60)
    let further = [(2, 60_500), (1, 119_999), (1, 120_000)].map { budget.takes($0, at: $1) }
    #expect(further == [true, false, true])
  }

  @Test func `a session remembers the newest that it has opened, and forgets what did not reach Kafka`() {
    var opened = OpenedNotifications()
    let ids = (0..<300 as Range<UInt64>).map { NotificationID(high: 1, low: $0) }
    for id in ids { opened.insert(id) }
    #expect(ids.filter(opened.contains) == Array(ids.suffix(256)))
    opened.remove(ids[299])
    opened.remove(nil)
    #expect(!opened.contains(ids[299]) && opened.contains(ids[298]))
  }
}
