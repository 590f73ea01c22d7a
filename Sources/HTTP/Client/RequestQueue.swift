/// The order of requests: a limit for all, a limit for each origin, and the others wait in order.
///
/// libcurl limits its connections too, but its requests wait in one line for all hosts, so a hanging host delays the others. Here origins
/// with waiting requests take turns. A value of numbers.
struct RequestQueue {
  private struct Origin {
    let name: String
    var active = 0
    var waiting: [Int] = []
  }

  private let maximum: Int
  private let maximumPerOrigin: Int
  /// Those with requests. The one that began a request last is the last.
  private var origins: [Origin] = []
  private(set) var active = 0

  init(maximum: Int, maximumPerOrigin: Int) {
    self.maximum = max(1, maximum)
    self.maximumPerOrigin = max(1, maximumPerOrigin)
  }

  /// Puts a request in line; ask `next` afterwards.
  mutating func add(_ number: Int, of origin: String) { change(origin) { $0.waiting.append(number) } }

  /// Removes a waiting request from the line.
  mutating func withdraw(_ number: Int, of origin: String) { change(origin) { $0.waiting.removeAll { $0 == number } } }

  /// A request that had begun has ended; ask `next` afterwards.
  mutating func end(_ origin: String) {
    active -= 1
    change(origin) { $0.active -= 1 }
  }

  /// The next request that may begin; it counts as begun from now on. Nil if none may.
  mutating func next() -> Int? {
    let wanted = origins.firstIndex { $0.active < maximumPerOrigin && !$0.waiting.isEmpty }
    guard active < maximum, let wanted else { return nil }
    var origin = origins.remove(at: wanted)
    let number = origin.waiting.removeFirst()
    origin.active += 1
    active += 1
    origins.append(origin)
    return number
  }

  private mutating func change(_ name: String, _ body: (inout Origin) -> Void) {
    let index = origins.firstIndex { $0.name == name } ?? origins.count
    if index == origins.count { origins.append(Origin(name: name)) }
    body(&origins[index])
    if origins[index].active == 0, origins[index].waiting.isEmpty { origins.remove(at: index) }
  }
}
