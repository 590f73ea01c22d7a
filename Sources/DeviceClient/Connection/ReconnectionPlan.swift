internal import Notifications

/// The time and address of the next connection. A value that takes ends and returns waits.
struct ReconnectionPlan {
  /// After a session of this duration the next loss counts as a first one.
  static let steadyMilliseconds: UInt64 = 10_000

  /// An older hello cannot take over a session of this age.
  static let settledMilliseconds: UInt64 = 300_000
  /// The most unanswered hellos that are counted.
  static let maximumAbandoned = 4

  /// The number of the present or next address.
  private(set) var address = 0
  private let addresses: Int
  /// The failed attempts since the last connection.
  private var failures = 0
  private var attempt = 0
  private var told: Int?
  private var abandoned = 0

  /// - Parameter addresses: their number, at least one.
  init(addresses: Int = 1) { self.addresses = addresses }

  /// Notes the cluster's order when to reconnect.
  mutating func goaway(_ reconnectAfterMilliseconds: Int) { told = reconnectAfterMilliseconds }

  /// Notes a hello whose connection ended before a welcome: lost, given up, or closed by a worker that cannot serve it.
  ///
  /// The cluster may process it after the next hello, and take over that one's session. Such an end is no reason to stay disconnected.
  mutating func helloAbandoned() { abandoned = min(abandoned + 1, Self.maximumAbandoned) }

  /// Notes the end of a connection; returns the milliseconds until the next attempt, or nil if there must be none.
  ///
  /// - Parameters:
  ///   - code: the close code; 1006 if there was none.
  ///   - sessionMilliseconds: the session's duration; nil if there was none.
  ///   - jitter: a random number from 0 to 1.
  mutating func ended(code: UInt16, sessionMilliseconds: UInt64?, jitter: Double) -> Int? {
    defer {
      told = nil
      attempt += 1
    }
    (address, failures) = ((address + 1) % addresses, 0)
    if let sessionMilliseconds, sessionMilliseconds >= Self.steadyMilliseconds { attempt = 0 }
    var reconnection = CloseCode.reconnection(after: code)
    if let sessionMilliseconds, sessionMilliseconds >= Self.settledMilliseconds { abandoned = 0 }
    if code == CloseCode.takenOver.rawValue, abandoned > 0 {
      abandoned -= 1
      reconnection = CloseCode.registrationLost.reconnection
    }
    // The cluster's order applies to any end after it, unless the code forbids a reconnection.
    if let told, reconnection != .never {
      // A goaway is not a failure, so the next attempt counts as the first.
      attempt = -1
      return Reconnection.wait(told: told, jitter: jitter)
    }
    return reconnection.wait(attempt: attempt, told: nil, jitter: jitter)
  }

  /// Notes a failed attempt; returns the milliseconds until the next one, at the next address. The wait grows only when all addresses have
  /// failed.
  ///
  /// - Parameter atLeast: the server's demand in milliseconds. It has whole seconds, so the device adds a random part of one.
  mutating func failed(jitter: Double, atLeast: Int = 0) -> Int {
    (address, failures) = ((address + 1) % addresses, failures + 1)
    let isRound = failures % addresses == 0
    defer { if isRound { attempt += 1 } }
    let backOff = Reconnection.backOff(from: 0, to: 120_000).wait(attempt: isRound ? attempt : 0, told: nil, jitter: jitter) ?? 0
    return max(atLeast > 0 ? atLeast + Int(min(max(jitter, 0), 1) * 1000) : 0, backOff)
  }
}
