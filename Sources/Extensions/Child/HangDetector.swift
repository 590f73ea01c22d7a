/// Finds out that a program owes an answer and does not work on it any more: a value, in the milliseconds of a loop's clock.
struct HangDetector {
  /// A program that has said nothing for so long, though it owed an answer all that time, hangs when a call's time expires.
  static let longestSilence: UInt64 = 5_000
  /// One that has said nothing yet may still be starting for so long.
  static let longestStart: UInt64 = 60_000
  /// A call that was given up is answered, too, within this time.
  static let longestDebt: UInt64 = 30_000
  /// The calls that were given up and are not answered.
  static let maximumDebts = 100_000

  private let began: UInt64
  /// When it said something for the first time.
  private var firstWord: UInt64?
  /// Calls that are open.
  private var open: Set<Int64> = []
  /// Calls that were given up and are not answered, and when that was; the same in their order, from `next` on.
  private var debts: Set<Int64> = []
  private var order: [(call: Int64, time: UInt64)] = []
  private var next = 0
  /// Since when it owes an answer and has said nothing.
  private var silentSince: UInt64?

  /// A program that starts now.
  init(at now: UInt64) { began = now }

  /// It is asked.
  mutating func asked(_ call: Int64, at now: UInt64) {
    open.insert(call)
    if silentSince == nil { silentSince = now }
  }

  /// It has said something.
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

  /// Whether it may say something of a call.
  func owes(_ call: Int64) -> Bool { open.contains(call) || debts.contains(call) }

  /// Nobody waits for a call any more.
  mutating func gaveUp(_ call: Int64, at now: UInt64) {
    guard open.remove(call) != nil else { return }
    debts.insert(call)
    order.append((call, now))
  }

  /// Why it is to be ended; nil where it works.
  ///
  /// - Parameter hasExpired: whether the time of a call has just ended; else nobody can know whether it is only slow.
  mutating func reason(at now: UInt64, hasExpired: Bool) -> ExtensionFailure? {
    while next < order.count, !debts.contains(order[next].call) { next += 1 }
    if next > 1_024, 2 * next > order.count {
      order.removeFirst(next)
      next = 0
    }
    if debts.count > Self.maximumDebts { return ExtensionFailure("its program leaves too many calls without an answer") }
    guard let firstWord else {
      let isLate = silentSince != nil && hasExpired && now >= began + Self.longestStart
      return isLate ? ExtensionFailure("its program has said nothing since it was started") : nil
    }
    if next < order.count, now >= max(order[next].time, firstWord) + Self.longestDebt {
      return ExtensionFailure("its program has not answered a call that was given up")
    }
    let hangs = silentSince.map { now >= $0 + Self.longestSilence } ?? false
    return hasExpired && hangs ? ExtensionFailure("its program hangs") : nil
  }
}
