/// Whose turn it is: so many requests at once, so many of them of one origin, the others wait in order.
///
/// libcurl bounds its connections too, but lets requests wait in one line for all hosts, where those of a host that hangs stand before
/// those of others. Here origins with waiting requests take turns. A value: numbers go in, the numbers of those that may begin come out.
struct RequestQueue {
  private struct Origin {
    var active = 0
    var waiting: [Int] = []
    /// It stands in `turns`.
    var isListed = false
  }

  private let maximum: Int
  private let maximumPerOrigin: Int
  private var origins: [String: Origin] = [:]
  /// Origins with a request that may begin once there is room in all.
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

  /// Takes a request that waits out of the line.
  mutating func withdraw(_ number: Int, of origin: String) {
    guard let index = origins[origin]?.waiting.firstIndex(of: number) else { return }
    origins[origin]?.waiting.remove(at: index)
    forget(origin)
  }

  /// A request that had begun is over; ask `next` afterwards.
  mutating func end(_ origin: String) {
    active -= 1
    origins[origin]?.active -= 1
    list(origin)
    forget(origin)
  }

  /// The next request that may begin, which counts as begun from now on; nil when none may.
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
