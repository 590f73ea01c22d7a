internal import Notifications

/// Values by name, of which the oldest are removed: by age, and beyond a limit.
struct AgedTable<Value: Sendable>: Sendable {
  private struct Entry: Sendable {
    let value: Value
    let at: Int64
    let place: Int
  }

  private var entries: [Name: Entry] = [:]
  /// The names by their places. A name that is set becomes the last.
  private var names: [Int: Name] = [:]
  /// No name has a place before the first, and the next name gets the next.
  private var (first, next) = (0, 0)
  private let limit: Int

  /// - Parameter limit: how many are kept, at least one.
  init(limit: Int) { self.limit = max(limit, 1) }

  var count: Int { entries.count }

  subscript(name: Name) -> Value? { entries[name]?.value }

  /// Sets the value of a name, which becomes the newest.
  mutating func set(_ value: Value, for name: Name, at time: Int64) {
    if let former = entries[name] { names[former.place] = nil }
    entries[name] = Entry(value: value, at: time, place: next)
    names[next] = name
    next += 1
    while entries.count > limit { removeOldest { _ in true } }
  }

  /// Removes values from before a time. Times are expected to rise, so it stops at the first that stays.
  mutating func forget(before time: Int64) { while removeOldest(where: { $0.at < time }) {} }

  /// Calls `body` with the values, the oldest first.
  func forEach(_ body: (_ name: Name, _ value: Value, _ at: Int64) -> Void) {
    for (name, entry) in entries.sorted(by: { $0.value.place < $1.value.place }) { body(name, entry.value, entry.at) }
  }

  /// Removes the oldest value if it meets a condition; false if it stays, or if there is none.
  @discardableResult
  private mutating func removeOldest(where condition: (Entry) -> Bool) -> Bool {
    while first < next {
      guard let name = names[first], let entry = entries[name] else {
        first += 1
        continue
      }
      guard condition(entry) else { return false }
      (names[first], entries[name]) = (nil, nil)
      return true
    }
    return false
  }
}
