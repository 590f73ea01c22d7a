import EventLoop

/// Detects that a program owes an answer and does not work on it. A value, in the milliseconds of a loop's clock.
struct HangDetector {
  /// A program that is silent for this time while it owes an answer hangs when a call's time expires.
  static let longestSilence: UInt64 = 5_000
  /// A program without any message may still be starting for this time.
  static let longestStart: UInt64 = 60_000
  /// A call that was given up must be answered within this time, too.
  static let longestDebt: UInt64 = 30_000
  /// The most unanswered calls that were given up.
  static let maximumDebts = 100_000

  private let began: UInt64
  /// The time of its first message.
  private var firstWord: UInt64?
  /// Calls that are open.
  private var open: Set<Int64> = []
  /// Unanswered calls that were given up, and the times of that, in their order.
  private var debts: Set<Int64> = []
  private var order = Queue<(call: Int64, time: UInt64)>()
  /// Since when it owes an answer and is silent.
  private var silentSince: UInt64?

  /// Begins with a program that starts now.
  init(at now: UInt64) { began = now }

  /// A call begins.
  mutating func asked(_ call: Int64, at now: UInt64) {
    open.insert(call)
    if silentSince == nil { silentSince = now }
  }

  /// It has sent a message.
  mutating func spoke(at now: UInt64) {
    if firstWord == nil { firstWord = now }
    silentSince = open.isEmpty && debts.isEmpty ? nil : now
  }

  /// It has answered a call.
  ///
  /// - Returns: whether it owed that answer.
  mutating func answered(_ call: Int64, at now: UInt64) -> Bool {
    guard open.remove(call) != nil || debts.remove(call) != nil else { return false }
    spoke(at: now)
    return true
  }

  /// Whether it may send messages on a call.
  func owes(_ call: Int64) -> Bool { open.contains(call) || debts.contains(call) }

  /// A call was given up.
  mutating func gaveUp(_ call: Int64, at now: UInt64) {
    guard open.remove(call) != nil else { return }
    debts.insert(call)
    order.append((call, now))
  }

  /// Why it must be ended; nil if it works.
  ///
  /// - Parameter hasExpired: whether the time of a call has just ended. Otherwise it may only be slow.
  mutating func reason(at now: UInt64, hasExpired: Bool) -> ExtensionFailure? {
    while let oldest = order.first, !debts.contains(oldest.call) { order.popFirst() }
    if debts.count > Self.maximumDebts { return ExtensionFailure("its program leaves too many calls without an answer") }
    guard let firstWord else {
      let isLate = silentSince != nil && hasExpired && now >= began + Self.longestStart
      return isLate ? ExtensionFailure("its program has said nothing since it was started") : nil
    }
    if let oldest = order.first, now >= max(oldest.time, firstWord) + Self.longestDebt {
      return ExtensionFailure("its program has not answered a call that was given up")
    }
    let hangs = silentSince.map { now >= $0 + Self.longestSilence } ?? false
    return hasExpired && hangs ? ExtensionFailure("its program hangs") : nil
  }
}
