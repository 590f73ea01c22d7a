internal import Notifications

/// Values by name, the oldest of which are forgotten: by age, and when there are too many.
struct AgedTable<Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    var value: Value
    var at: Int64
    /// Which place in the order is the entry's own; earlier ones are left over from before it was set again.
    var place: Int
  }

  private var entries: [Name: Entry] = [:]
  private var order: [Name] = []
  /// Places before this one are over; `order[0]` has the place `firstPlace`.
  private var head = 0
  private var firstPlace = 0
  private let limit: Int
  /// How many were forgotten because there were too many.
  private(set) var evictions = 0

  /// - Parameter limit: how many are kept, at least one.
  init(limit: Int) { self.limit = max(limit, 1) }

  var count: Int { entries.count }

  subscript(name: Name) -> Value? { entries[name]?.value }

  /// Sets the value of a name, which becomes the newest.
  mutating func set(_ value: Value, for name: Name, at time: Int64) {
    entries[name] = Entry(value: value, at: time, place: firstPlace + order.count)
    order.append(name)
    while entries.count > limit, removeOldest(where: { _ in true }) { evictions += 1 }
    compact()
  }

  /// Forgets what was set before a time; times are expected to rise, so it stops at the first that stays.
  mutating func forget(before time: Int64) {
    while removeOldest(where: { $0.at < time }) {}
    compact()
  }

  /// Calls `body` with what is kept, the oldest first.
  func forEach(_ body: (_ name: Name, _ value: Value, _ at: Int64) -> Void) {
    for index in head..<order.count {
      guard let entry = entries[order[index]], entry.place == firstPlace + index else { continue }
      body(order[index], entry.value, entry.at)
    }
  }

  private mutating func removeOldest(where condition: (Entry) -> Bool) -> Bool {
    while head < order.count {
      let name = order[head]
      if let entry = entries[name], entry.place == firstPlace + head {
        guard condition(entry) else { return false }
        entries[name] = nil
        head += 1
        return true
      }
      head += 1
    }
    return false
  }

  /// Gives back the memory of places that are over; amortised, since it at least halves the order.
  private mutating func compact() {
    // Names that are set again and again fill the order though they are few.
    if order.count - head > 2 * entries.count + 64 {
      let kept = (head..<order.count).filter { entries[order[$0]]?.place == firstPlace + $0 }.map { order[$0] }
      (order, head, firstPlace) = (kept, 0, 0)
      for (place, name) in kept.enumerated() { entries[name]?.place = place }
    } else if head > 64, head * 2 > order.count {
      order.removeFirst(head)
      firstPlace += head
      head = 0
    }
  }
}
