import Notifications
import Testing

@testable import Transform

/// Whose mailboxes are looked at for entries that end.
@Suite struct EvictionsTests {
  private static let removal = Evictions.Ending.canceled(by: NotificationID(high: 0, low: 1))

  @Test func `each device has one eviction at a time, and so many devices have one`() {
    var evictions = Evictions()
    var begun: [Int] = []
    for device in 0..<Evictions.maximum { if let number = evictions.begin(device, .evicted) { begun.append(number) } }
    #expect(begun.count == Evictions.maximum)
    for ending in [.evicted, Self.removal] { #expect(evictions.begin(1_000, ending) == nil, "there is no room") }
    _ = evictions.ended(begun[5])
    #expect(evictions.begin(0, Self.removal) == nil, "the first device has an eviction")
    #expect(evictions.begin(1_000, Self.removal) != nil)
  }
}

extension Evictions {
  fileprivate mutating func begin(_ device: Int, _ ending: Ending) -> Int? {
    Array("\(device)".utf8).withUnsafeBytes { begin($0, ending) }
  }
}
