internal import EventLoop

/// Calls of the program that wait for the cluster's welcome, each for a bounded time. Loop-confined.
final class WelcomeWaiters {
  /// How long a call waits, in milliseconds.
  static let milliseconds = 60_000

  private var waiters: [Int: (timer: Timer, body: (DeviceError?) -> Void)] = [:]
  private var lastNumber = 0

  /// Calls `body` at the next end of the waiting, or with an error when the time is over.
  func add(on loop: EventLoop, _ body: @escaping (DeviceError?) -> Void) {
    lastNumber += 1
    let number = lastNumber
    let timer = Timer(on: loop) { [weak self] in
      self?.finish(
        number,
        DeviceError(
          .notConnected,
          "the cluster has not welcomed the device within \(Self.milliseconds / 1000) s: the device keeps trying, and you may call again"))
    }
    timer.start(after: Self.milliseconds)
    waiters[number] = (timer, body)
  }

  /// Ends all calls: with a welcome, or with the reason why none will come.
  func finish(_ error: DeviceError?) { for number in waiters.keys.sorted() { finish(number, error) } }

  private func finish(_ number: Int, _ error: DeviceError?) {
    guard let waiter = waiters.removeValue(forKey: number) else { return }
    waiter.timer.close()
    waiter.body(error)
  }
}
