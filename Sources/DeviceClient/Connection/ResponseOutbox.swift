internal import Notifications

/// The responses that the cluster has not answered yet. Each is sent, with the same id, until it is accepted or refused. A value.
struct ResponseOutbox {
  private struct Entry {
    let response: ResponseFrame
    /// Whether it survives the end of the process. It is not sent before.
    var isStored = true
    /// When it was sent in this session, in the loop's milliseconds; nil if it was not.
    var sentAt: UInt64?

    var id: Name { Name(response.response) }
  }

  private var entries: [Entry] = []
  private let limit: Int
  private let inFlightLimit: Int
  private let resendMilliseconds: UInt64

  /// - Parameters:
  ///   - limit: how many may wait for an answer.
  ///   - inFlightLimit: how many may be sent and unanswered at once.
  ///   - resendMilliseconds: the time without an answer after which one is sent again within a session.
  init(limit: Int = 1_000, inFlightLimit: Int = 16, resendMilliseconds: UInt64 = 30_000) {
    (self.limit, self.inFlightLimit, self.resendMilliseconds) = (limit, inFlightLimit, resendMilliseconds)
  }

  /// The responses without an answer, the oldest first.
  var waiting: [ResponseFrame] { entries.map(\.response) }

  /// Whether too many wait.
  var isFull: Bool { entries.count >= limit }

  /// Adds one; false if too many wait.
  @discardableResult mutating func add(_ response: ResponseFrame, isStored: Bool = true) -> Bool {
    guard !isFull else { return false }
    entries.append(Entry(response: response, isStored: isStored))
    return true
  }

  /// Notes that a response is stored, so that it may be sent.
  mutating func stored(_ id: Name) {
    if let index = entries.firstIndex(where: { $0.id == id }) { entries[index].isStored = true }
  }

  /// Restores a response without a limit, unless it exists already.
  mutating func restore(_ response: ResponseFrame) {
    let entry = Entry(response: response)
    if !entries.contains(where: { $0.id == entry.id }) { entries.append(entry) }
  }

  /// Takes the cluster's answer; returns the response, or nil for an unknown id.
  mutating func settle(_ id: Name) -> ResponseFrame? {
    guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
    return entries.remove(at: index).response
  }

  /// The responses to send now in an open session: new ones up to the limit, and those without an answer for too long.
  mutating func next(now: UInt64) -> [ResponseFrame] {
    var inFlight = entries.count { $0.sentAt != nil }
    var due: [ResponseFrame] = []
    for index in entries.indices {
      if let sentAt = entries[index].sentAt {
        guard now >= sentAt + resendMilliseconds else { continue }
      } else {
        guard entries[index].isStored, inFlight < inFlightLimit else { break }
        inFlight += 1
      }
      entries[index].sentAt = now
      due.append(entries[index].response)
    }
    return due
  }

  /// The session has ended: everything is sent again in the next.
  mutating func sessionEnded() { for index in entries.indices { entries[index].sentAt = nil } }
}
