/// Which hellos are worked on, which wait, and which are told when to retry: a value, so that a storm can be played without one.
///
/// A hello costs Redis several calls, so a lane takes so many per second and has so many under way at most. What comes beyond waits in
/// order, as long as it can be expected to get its turn in time. Whoever is refused is given a time of their own after that, one
/// behind the other at the same rate, so that those who were refused together do not retry together.
struct AdmissionGate {
  /// What a hello is answered with.
  enum Verdict: Equatable {
    /// It is worked on now; `ended` must follow.
    case enter
    /// It waits; `next` or `overdue` gives it back.
    case wait
    /// There is no room; the milliseconds after which there is.
    case refuse(retryAfter: Int)
  }

  private struct Waiting {
    let generation: UInt64
    let since: UInt64
  }

  /// The longest time that anybody is told to stay away, in milliseconds.
  static let longestAbsence = 300_000

  private let maximumInFlight: Int
  private let perSecond: Double
  private let waitMilliseconds: Int
  private let maximumWaiting: Int
  private var waiting: [Waiting] = []
  /// Where `waiting` begins: what lies before has gone.
  private var head = 0
  private(set) var inFlight = 0
  /// The credit of the rate: how many hellos may begin now.
  private var tokens: Double
  private var filledAt: UInt64 = 0
  /// The time that was given to the last who was refused.
  private var lastRetry = 0.0

  /// - Parameters:
  ///   - maximumInFlight: hellos that are worked on at a time.
  ///   - perSecond: hellos that begin to be worked on in a second.
  ///   - waitMilliseconds: how long one may wait for its turn.
  init(maximumInFlight: Int = 256, perSecond: Int, waitMilliseconds: Int) {
    precondition(maximumInFlight > 0 && perSecond > 0 && waitMilliseconds > 0, "a gate that lets nobody in is none")
    self.maximumInFlight = maximumInFlight
    self.perSecond = Double(perSecond)
    self.waitMilliseconds = waitMilliseconds
    maximumWaiting = max(1, perSecond * waitMilliseconds / 1000)
    tokens = Self.burst(self.perSecond)
  }

  /// What may begin at once after a pause: a twentieth of a second's share, so that the ceiling holds in any second.
  private static func burst(_ perSecond: Double) -> Double { max(1, perSecond / 20) }

  /// What it remembers, those who have gone included.
  var storedCount: Int { waiting.count }

  /// How many wait.
  var waitingCount: Int { waiting.count - head }

  /// Whether a further hello would be refused.
  var isFull: Bool { waitingCount >= maximumWaiting }

  private mutating func fill(_ now: UInt64) {
    tokens = min(Self.burst(perSecond), tokens + Double(now - min(now, filledAt)) * perSecond / 1000)
    filledAt = now
  }

  /// A hello has come.
  ///
  /// - Parameter now: milliseconds of a clock that only goes forward.
  mutating func arrived(_ generation: UInt64, now: UInt64) -> Verdict {
    fill(now)
    if waitingCount == 0, inFlight < maximumInFlight, tokens >= 1 {
      begin()
      return .enter
    }
    if isFull { return .refuse(retryAfter: retryAfter(now: now)) }
    waiting.append(Waiting(generation: generation, since: now))
    return .wait
  }

  private mutating func begin() {
    inFlight += 1
    tokens -= 1
  }

  private mutating func removeFirst() {
    head += 1
    if head > 1024, head * 2 > waiting.count {
      waiting.removeFirst(head)
      head = 0
    }
  }

  /// The next one whose turn it is: as `enter`. Nil: none now.
  ///
  /// - Parameter isThere: whether it still waits; one that has gone takes nobody's turn.
  mutating func next(now: UInt64, isThere: (UInt64) -> Bool) -> UInt64? {
    fill(now)
    while head < waiting.count, inFlight < maximumInFlight, tokens >= 1 {
      let generation = waiting[head].generation
      removeFirst()
      if isThere(generation) {
        begin()
        return generation
      }
    }
    return nil
  }

  /// One that has waited too long, and the milliseconds after which it may retry. Nil: none.
  mutating func overdue(now: UInt64) -> (generation: UInt64, retryAfter: Int)? {
    guard head < waiting.count, now - min(now, waiting[head].since) > UInt64(waitMilliseconds) else { return nil }
    let generation = waiting[head].generation
    removeFirst()
    return (generation, retryAfter(now: now))
  }

  /// One that entered is in, or out again, or waits for something that this gate does not guard.
  mutating func ended() {
    precondition(inFlight > 0, "nobody ends who did not begin")
    inFlight -= 1
  }

  /// A time of its own for one who is refused: milliseconds from now.
  ///
  /// - Parameter atLeast: milliseconds before which it is of no use to come.
  mutating func retryAfter(now: UInt64, atLeast: Int = 1000) -> Int {
    let queue = Double(waitingCount) * 1000 / perSecond
    let earliest = Double(now) + max(Double(atLeast), queue)
    let latest = Double(now) + Double(Self.longestAbsence)
    lastRetry = max(lastRetry + 1000 / perSecond, earliest)
    // Beyond the longest absence times are drawn by lot: the storm is larger than what can be planned.
    if lastRetry > latest { lastRetry = Double.random(in: earliest...latest) }
    return Int(lastRetry) - Int(now)
  }
}
