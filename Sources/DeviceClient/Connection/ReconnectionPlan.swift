internal import Notifications

/// When and where to connect again, as a value: an end in, a wait out.
struct ReconnectionPlan {
  /// After a session has stood this long, the next loss counts as a first one.
  static let steadyMilliseconds: UInt64 = 10_000

  /// A session that has stood so long is not taken over by a hello of before.
  static let settledMilliseconds: UInt64 = 300_000
  /// Hellos left without an answer that are counted.
  static let maximumAbandoned = 4

  /// The number of the address that is tried next, or connected to.
  private(set) var address = 0
  private let addresses: Int
  /// Attempts that have failed since the last connection.
  private var failures = 0
  private var attempt = 0
  private var told: Int?
  private var abandoned = 0

  /// - Parameter addresses: how many there are, at least one.
  init(addresses: Int = 1) { self.addresses = addresses }

  /// The cluster has said when to reconnect.
  mutating func goaway(_ reconnectAfterMilliseconds: Int) { told = reconnectAfterMilliseconds }

  /// A hello was sent, and its connection was lost, given up, or closed by a worker that cannot serve it, before a welcome came.
  ///
  /// It may reach the cluster, or be worked on, after the next one, and take that one's session over: such an end is no reason to stay away.
  mutating func helloAbandoned() { abandoned = min(abandoned + 1, Self.maximumAbandoned) }

  /// A connection is over: the milliseconds until the next attempt, or nil when there is to be none.
  ///
  /// - Parameters:
  ///   - code: the close code; 1006 when there was none.
  ///   - sessionMilliseconds: how long its session stood; nil when there was none.
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
    // The cluster's word holds for any end that follows it, unless the code forbids to reconnect.
    if let told, reconnection != .never {
      // To be told to go away is no failure: what follows is tried as after a first loss.
      attempt = -1
      return Reconnection.wait(told: told, jitter: jitter)
    }
    return reconnection.wait(attempt: attempt, told: nil, jitter: jitter)
  }

  /// No connection could be made: the milliseconds until the next attempt, which goes to the next address. Only when none of them
  /// has answered does the device wait longer each time.
  ///
  /// - Parameter atLeast: what the server asked for, in milliseconds; it says whole seconds, so the device adds a part of one by lot.
  mutating func failed(jitter: Double, atLeast: Int = 0) -> Int {
    (address, failures) = ((address + 1) % addresses, failures + 1)
    let isRound = failures % addresses == 0
    defer { if isRound { attempt += 1 } }
    let backOff = Reconnection.backOff(from: 0, to: 120_000).wait(attempt: isRound ? attempt : 0, told: nil, jitter: jitter) ?? 0
    return max(atLeast > 0 ? atLeast + Int(min(max(jitter, 0), 1) * 1000) : 0, backOff)
  }
}
