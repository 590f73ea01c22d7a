internal import EventLoop

/// Calls that wait for their ends, each for a bounded time.
final class TimedCalls<End> {
  private var calls: [Int: (timer: Timer, whenEnded: (End) -> Void)] = [:]
  private var lastNumber = 0

  /// How many calls wait.
  var count: Int { calls.count }

  /// Adds a call; returns its number.
  ///
  /// - Parameters:
  ///   - late: the end of the call when the time is over.
  ///   - whenEnded: is called once.
  @discardableResult
  func add(on loop: EventLoop, milliseconds: Int, late: End, _ whenEnded: @escaping (End) -> Void) -> Int {
    lastNumber += 1
    let number = lastNumber
    calls[number] = (Timer(on: loop, after: milliseconds) { [weak self] in self?.end(number, late) }, whenEnded)
    return number
  }

  /// Ends a call, unless it has ended.
  func end(_ number: Int, _ end: End) {
    guard let call = calls.removeValue(forKey: number) else { return }
    call.timer.close()
    call.whenEnded(end)
  }

  /// Ends all calls, in their order.
  func endAll(_ end: End) { for number in calls.keys.sorted() { self.end(number, end) } }

  /// Drops all calls.
  func close() {
    for call in calls.values { call.timer.close() }
    calls = [:]
  }
}
