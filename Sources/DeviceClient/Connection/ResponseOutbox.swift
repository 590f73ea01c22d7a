internal import Notifications

/// The responses that the cluster has not answered yet, as a value: each is sent, with the same id, until it is accepted or refused.
struct ResponseOutbox {
  private struct Entry {
    let response: ResponseFrame
    /// When it was sent in this session, in the loop's milliseconds; nil when it was not.
    var sentAt: UInt64?
  }

  private var entries: [Entry] = []
  private let limit: Int
  private let inFlightLimit: Int
  private let resendMilliseconds: UInt64

  /// - Parameters:
  ///   - limit: how many may wait for an answer.
  ///   - inFlightLimit: how many of them may be under way at once.
  ///   - resendMilliseconds: after how long without an answer one is sent again within a session.
  init(limit: Int = 1_000, inFlightLimit: Int = 16, resendMilliseconds: UInt64 = 30_000) {
    (self.limit, self.inFlightLimit, self.resendMilliseconds) = (limit, inFlightLimit, resendMilliseconds)
  }

  /// What waits for an answer, the oldest first.
  var waiting: [ResponseFrame] { entries.map(\.response) }

  /// Adds one; false when too many wait, and it is not taken.
  mutating func add(_ response: ResponseFrame) -> Bool {
    guard entries.count < limit else { return false }
    entries.append(Entry(response: response))
    return true
  }

  /// Puts one back that was taken before, however many there are; one that is there already stays alone.
  mutating func restore(_ response: ResponseFrame) {
    if !entries.contains(where: { $0.response.response == response.response }) { entries.append(Entry(response: response)) }
  }

  /// The cluster has answered: what it was, or nil for an id that does not wait.
  mutating func settle(_ id: String) -> ResponseFrame? {
    guard let index = entries.firstIndex(where: { $0.response.response == id }) else { return nil }
    return entries.remove(at: index).response
  }

  /// What is to be sent now in an open session: those not sent yet as far as there is room, and those unanswered for too long.
  mutating func next(now: UInt64) -> [ResponseFrame] {
    var inFlight = entries.count { $0.sentAt != nil }
    var due: [ResponseFrame] = []
    for index in entries.indices {
      if let sentAt = entries[index].sentAt {
        guard now >= sentAt + resendMilliseconds else { continue }
      } else {
        guard inFlight < inFlightLimit else { break }
        inFlight += 1
      }
      entries[index].sentAt = now
      due.append(entries[index].response)
    }
    return due
  }

  /// The session is over: everything is to be sent again in the next.
  mutating func sessionEnded() { for index in entries.indices { entries[index].sentAt = nil } }
}
