/// The order of requests: a limit for all, a limit for each origin, and the others wait in order.
///
/// libcurl limits its connections too, but its requests wait in one line for all hosts, so a hanging host delays the others. Here origins
/// with waiting requests take turns. A value of numbers.
struct RequestQueue {
  private struct Origin {
    var active = 0
    var waiting: [Int] = []
    /// Whether it is in `turns`.
    var isListed = false
  }

  private let maximum: Int
  private let maximumPerOrigin: Int
  private var origins: [String: Origin] = [:]
  /// Origins with a request that may begin as soon as the total allows it.
  private var turns: [String] = []
  private(set) var active = 0

  init(maximum: Int, maximumPerOrigin: Int) {
    self.maximum = max(1, maximum)
    self.maximumPerOrigin = max(1, maximumPerOrigin)
  }

  /// Puts a request in line; ask `next` afterwards.
  mutating func add(_ number: Int, of origin: String) {
    origins[origin, default: Origin()].waiting.append(number)
    list(origin)
  }

  /// Removes a waiting request from the line.
  mutating func withdraw(_ number: Int, of origin: String) {
    guard let index = origins[origin]?.waiting.firstIndex(of: number) else { return }
    origins[origin]?.waiting.remove(at: index)
    forget(origin)
  }

  /// A request that had begun has ended; ask `next` afterwards.
  mutating func end(_ origin: String) {
    active -= 1
    origins[origin]?.active -= 1
    list(origin)
    forget(origin)
  }

  /// The next request that may begin; it counts as begun from now on. Nil if none may.
  mutating func next() -> Int? {
    while active < maximum, !turns.isEmpty {
      let name = turns.removeFirst()
      guard var origin = origins[name] else { continue }
      origin.isListed = false
      guard origin.active < maximumPerOrigin, !origin.waiting.isEmpty else {
        origins[name] = origin
        forget(name)
        continue
      }
      let number = origin.waiting.removeFirst()
      origin.active += 1
      active += 1
      origins[name] = origin
      list(name)
      return number
    }
    return nil
  }

  private mutating func list(_ name: String) {
    guard let origin = origins[name], !origin.isListed, !origin.waiting.isEmpty, origin.active < maximumPerOrigin else { return }
    origins[name]?.isListed = true
    turns.append(name)
  }

  private mutating func forget(_ name: String) {
    guard let origin = origins[name], origin.active == 0, origin.waiting.isEmpty, !origin.isListed else { return }
    origins[name] = nil
  }
}
