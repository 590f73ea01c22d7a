/// The calls of the program's delegate that have not returned. A value without a clock.
///
/// The device waits for none of them: a call ends when it returns, or when its time is over.
struct ProgramCalls {
  /// Why the delegate is called.
  enum Reason: Equatable {
    /// It takes what the person did.
    case response(String, DeliveredNotification)
    /// A notification wakes the program.
    case wake(DeliveredNotification)

    /// The notification that the call is about.
    var notification: DeliveredNotification {
      switch self {
      case .response(_, let notification), .wake(let notification): notification
      }
    }
  }

  /// How many calls may run at once.
  static let limit = 1_000

  private struct Call {
    let number: Int
    let reason: Reason
    let deadline: UInt64
  }

  /// In the order of their deadlines.
  private var calls: [Call] = []
  private var lastNumber = 0
  private let milliseconds: UInt64

  /// - Parameter milliseconds: how long a call may take.
  init(milliseconds: Int) { self.milliseconds = UInt64(clamping: milliseconds) }

  /// Begins a call; returns its number, or nil if too many run.
  mutating func begin(_ reason: Reason, now: UInt64) -> Int? {
    guard calls.count < Self.limit else { return nil }
    lastNumber += 1
    calls.append(Call(number: lastNumber, reason: reason, deadline: now + milliseconds))
    return lastNumber
  }

  /// Notes that a call has returned; returns its reason, or nil if its time was over before.
  mutating func end(_ number: Int) -> Reason? {
    guard let index = calls.firstIndex(where: { $0.number == number }) else { return nil }
    return calls.remove(at: index).reason
  }

  /// The time at which the next call is over; nil if none runs.
  var deadline: UInt64? { calls.first?.deadline }

  /// Takes the time; returns the reasons of the calls whose time is over.
  mutating func expire(now: UInt64) -> [Reason] {
    let over = calls.prefix { $0.deadline <= now }
    calls.removeFirst(over.count)
    return over.map(\.reason)
  }
}
