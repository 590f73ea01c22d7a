internal import Notifications

/// Values by name, of which the oldest are removed: by age, and beyond a limit.
struct AgedTable<Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    var value: Value
    var at: Int64
    /// The entry's present place in the order. Earlier places of it are obsolete.
    var place: Int
  }

  private var entries: [Name: Entry] = [:]
  private var order: [Name] = []
  /// Places before this one are obsolete; `order[0]` has the place `firstPlace`.
  private var head = 0
  private var firstPlace = 0
  private let limit: Int
  /// How many were removed because of the limit.
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

  /// Removes values from before a time. Times are expected to rise, so it stops at the first that stays.
  mutating func forget(before time: Int64) {
    while removeOldest(where: { $0.at < time }) {}
    compact()
  }

  /// Calls `body` with the values, the oldest first.
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

  /// Frees the memory of obsolete places. It is amortised, since it at least halves the order.
  private mutating func compact() {
    // Names that are set repeatedly fill the order although they are few.
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
