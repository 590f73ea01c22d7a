/// The state machine of a connection. A value: events in, actions out.
///
/// idle → connecting → greeting → up. A failure leads from each of the last three to waiting, and from waiting back to connecting.
struct ConnectionCycle {
  enum Phase: Hashable {
    case idle, connecting, greeting, up, waiting, closed
  }

  enum Action: Hashable {
    case nothing
    case connect
    case greet
    case announceUp
    /// `wasUp`: a working connection was lost, and not only an attempt failed.
    case retry(afterMilliseconds: Int, wasUp: Bool)
  }

  private(set) var phase = Phase.idle
  /// Why there is no connection; nil before the first failure and while it is up.
  private(set) var cause: RedisError?
  private var failures = 0
  private var upSince: UInt64 = 0
  private let backoff: Backoff
  private let random: (ClosedRange<Int>) -> Int

  /// A connection that lasted less long counts as a further failure, so that a server that drops its clients is not flooded.
  static let steadyMilliseconds: UInt64 = 5000

  init(_ backoff: Backoff, random: @escaping (ClosedRange<Int>) -> Int = { Int.random(in: $0) }) {
    self.backoff = backoff
    self.random = random
  }

  private mutating func move(_ from: Phase, to next: Phase) -> Bool {
    guard phase == from else { return false }
    phase = next
    return true
  }

  mutating func start() -> Action { move(.idle, to: .connecting) ? .connect : .nothing }

  mutating func connected() -> Action { move(.connecting, to: .greeting) ? .greet : .nothing }

  mutating func waited() -> Action { move(.waiting, to: .connecting) ? .connect : .nothing }

  mutating func greeted(now: UInt64) -> Action {
    guard move(.greeting, to: .up) else { return .nothing }
    cause = nil
    upSince = now
    return .announceUp
  }

  mutating func failed(_ error: RedisError, now: UInt64) -> Action {
    let wasUp = phase == .up
    switch phase {
    case .connecting, .greeting: break
    case .up: if now >= upSince + Self.steadyMilliseconds { failures = 0 }
    case .idle, .waiting, .closed: return .nothing
    }
    phase = .waiting
    cause = error
    let wait = backoff.wait(after: failures, isHopeless: !error.isRetriable, random: random)
    failures += 1
    return .retry(afterMilliseconds: wait, wasUp: wasUp)
  }

  /// Closes it; answers whether it was open.
  mutating func close() -> Bool {
    guard phase != .closed else { return false }
    phase = .closed
    return true
  }
}
