import EventLoop

/// Decides which hellos are processed, which wait, and when refused ones retry. A value.
///
/// A hello costs Redis several calls. So a lane limits how many begin in a second and how many it processes at once. Further ones wait in
/// order, if their turn can come in time.
/// Refused devices get retry times one after another at the same rate, so they do not all retry together.
struct AdmissionGate {
  /// The answer to a hello.
  enum Decision: Equatable {
    /// It is processed now; `ended` must follow.
    case enter
    /// It waits; `next` or `overdue` returns it later.
    case wait
    /// There is no free slot; the device may retry after these milliseconds.
    case refuse(retryAfter: Int)
  }

  /// The share of the rate that may begin at once after a pause: small, so that no second exceeds the rate.
  private static let burstMilliseconds = 50
  /// The longest time that a device must stay away, in milliseconds.
  static let longestAbsence = 300_000

  private let maximumInFlight: Int
  private let perSecond: Double
  private let waitMilliseconds: Int
  private let maximumWaiting: Int
  private var waiting = Queue<(generation: UInt64, since: UInt64)>()
  private(set) var inFlight = 0
  /// The hellos that may begin now by the rate.
  private var bucket: TokenBucket
  /// The latest retry time that was given.
  private var lastRetry = 0.0

  /// - Parameters:
  ///   - maximumInFlight: how many hellos are processed at once.
  ///   - perSecond: how many hellos begin in a second.
  ///   - waitMilliseconds: how long a hello may wait.
  init(maximumInFlight: Int = 256, perSecond: Int, waitMilliseconds: Int) {
    precondition(maximumInFlight > 0 && perSecond > 0 && waitMilliseconds > 0, "the gate must admit something")
    self.maximumInFlight = maximumInFlight
    self.perSecond = Double(perSecond)
    self.waitMilliseconds = waitMilliseconds
    maximumWaiting = max(1, perSecond * waitMilliseconds / 1000)
    bucket = TokenBucket(perSecond: perSecond, burstMilliseconds: Self.burstMilliseconds)
  }

  /// How many hellos wait.
  var waitingCount: Int { waiting.count }

  /// Whether a further hello would be refused.
  var isFull: Bool { waitingCount >= maximumWaiting }

  /// Takes a new hello.
  ///
  /// - Parameter now: milliseconds of a monotonic clock.
  mutating func arrived(_ generation: UInt64, now: UInt64) -> Decision {
    if waitingCount == 0, inFlight < maximumInFlight, bucket.take(at: now) {
      inFlight += 1
      return .enter
    }
    if isFull { return .refuse(retryAfter: retryAfter(now: now)) }
    waiting.append((generation, now))
    return .wait
  }

  /// Returns the next hello to process, as with `enter`; nil if none may begin now.
  ///
  /// - Parameter isThere: whether a hello still waits. A hello whose connection closed uses no slot.
  mutating func next(now: UInt64, isThere: (UInt64) -> Bool) -> UInt64? {
    while let generation = waiting.first?.generation, inFlight < maximumInFlight, bucket.hasOne(at: now) {
      waiting.popFirst()
      guard isThere(generation), bucket.take(at: now) else { continue }
      inFlight += 1
      return generation
    }
    return nil
  }

  /// Returns a hello that has waited too long, and the milliseconds after which it may retry; nil if there is none.
  mutating func overdue(now: UInt64) -> (generation: UInt64, retryAfter: Int)? {
    guard let first = waiting.first, now - min(now, first.since) > UInt64(waitMilliseconds) else { return nil }
    waiting.popFirst()
    return (first.generation, retryAfter(now: now))
  }

  /// Notes that an entered hello is finished, or waits for something that this gate does not limit.
  mutating func ended() {
    precondition(inFlight > 0, "a hello ends only after it has begun")
    inFlight -= 1
  }

  /// Reserves a retry time for a refused device: milliseconds from now.
  ///
  /// - Parameter atLeast: the earliest time at which a retry makes sense, in milliseconds.
  mutating func retryAfter(now: UInt64, atLeast: Int = 1000) -> Int {
    let queue = Double(waitingCount) * 1000 / perSecond
    let earliest = Double(now) + max(Double(atLeast), queue)
    let latest = Double(now) + Double(Self.longestAbsence)
    lastRetry = max(lastRetry + 1000 / perSecond, earliest)
    // Beyond the longest absence the times are random: the crowd is too large for a plan.
    if lastRetry > latest { lastRetry = Double.random(in: earliest...latest) }
    return Int(lastRetry) - Int(now)
  }
}
