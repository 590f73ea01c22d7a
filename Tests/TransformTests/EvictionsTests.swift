import Notifications
import Testing

@testable import Transform

/// Whose mailboxes are looked at for entries that end, and who waits for that.
@Suite struct EvictionsTests {
  private static let removal = Evictions.Ending.canceled(by: NotificationID(high: 0, low: 1))

  @Test func `a cancellation waits for room, or for its device, and an overflow is left to a later request`() {
    var evictions = Evictions()
    var begun: [Int] = []
    for device in 0..<Evictions.maximum { if let number = evictions.begin(device, .evicted) { begun.append(number) } }
    #expect(begun.count == Evictions.maximum)
    // For the last device it waits once only.
    for (device, ending) in [(1_000, .evicted), (1_001, Self.removal), (0, Self.removal), (1_001, Self.removal)] {
      #expect(evictions.begin(device, ending) == nil)
    }
    #expect(evictions.nextDevice() == nil)
    _ = evictions.ended(begun[5])
    #expect(evictions.nextDevice() == 1_001)
    _ = evictions.ended(begun[6])
    #expect(evictions.nextDevice() == nil, "the first device has an eviction")
    _ = evictions.ended(begun[0])
    #expect(evictions.nextDevice() == 0)
    #expect(evictions.nextDevice() == nil)
  }

  @Test func `cancellations that are too many are left to the devices' sessions`() {
    var evictions = Evictions()
    var begun: [Int] = []
    for device in 0..<Evictions.maximum + Evictions.waitingMaximum + 10 {
      if let number = evictions.begin(device, Self.removal) { begun.append(number) }
    }
    var waited = 0
    while let number = begun.popLast() {
      _ = evictions.ended(number)
      guard let next = evictions.next() else { continue }
      waited += 1
      begun.append(next.number)
    }
    #expect(waited == Evictions.waitingMaximum)
  }
}

extension Evictions {
  fileprivate mutating func begin(_ device: Int, _ ending: Ending) -> Int? {
    Array("\(device)".utf8).withUnsafeBytes { begin($0, ending) }
  }

  fileprivate mutating func nextDevice() -> Int? { next().flatMap { Int(String(decoding: $0.device, as: UTF8.self)) } }
}
