/// Decides when a lane reads requests, leaves them unread, or refuses them. A value: its clock is handed in.
///
/// A lane without room first stops reading, so that senders wait. After `pauseMilliseconds` it reads again, and refuses what it reads. A
/// request must not wait through several pauses. So a pause that begins before each connection was read continues the one before.
struct IngressFlow {
  enum Phase {
    /// Requests are taken.
    case open
    /// Nothing is read: Kafka or the memory has no room.
    case paused
    /// That has lasted for long. Requests are read, and refused at once.
    case shedding
  }

  /// What a lane does when it has no room.
  enum Action: Equatable {
    /// It stops reading, for at most this time.
    case pause(milliseconds: Int)
    /// It refuses requests at once.
    case refuse
  }

  private let answerMilliseconds: Int
  private let pauseMilliseconds: Int
  private(set) var phase = Phase.open
  /// Since when a request may wait unread.
  private var unreadSince: UInt64?
  /// The loop's turn in which reading began.
  private var readSince: UInt64 = 0

  /// - Parameters:
  ///   - answerMilliseconds: how long a request waits for Kafka after it was read.
  ///   - pauseMilliseconds: how long a request may wait unread.
  init(answerMilliseconds: Int, pauseMilliseconds: Int) {
    (self.answerMilliseconds, self.pauseMilliseconds) = (answerMilliseconds, pauseMilliseconds)
  }

  /// When a request that was read at `read` is answered at the latest.
  func deadline(ofRead read: UInt64) -> UInt64 { read + UInt64(answerMilliseconds) }

  /// Notes that there is no room; nil if the lane already acts on that.
  ///
  /// - Parameters:
  ///   - now: milliseconds of a monotonic clock.
  ///   - turn: the number of the loop's turn. A whole turn reads each connection that has sent something.
  mutating func becomeFull(at now: UInt64, turn: UInt64) -> Action? {
    guard phase == .open else { return nil }
    // The turn in which reading began may have been half over, and this one is not over.
    if turn >= readSince + 2 { unreadSince = nil }
    let since = unreadSince ?? now
    unreadSince = since
    let left = pauseMilliseconds - Int(now - min(now, since))
    phase = left > 0 ? .paused : .shedding
    return left > 0 ? .pause(milliseconds: left) : .refuse
  }

  /// Notes that a pause has lasted its time; false if it ended before.
  mutating func endPause(turn: UInt64) -> Bool {
    guard phase == .paused else { return false }
    (phase, readSince) = (.shedding, turn)
    return true
  }

  /// Notes that there is room.
  mutating func becomeOpen(turn: UInt64) {
    if phase == .paused { readSince = turn }
    phase = .open
  }
}
