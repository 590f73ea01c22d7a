import Notifications
import Redis
import Worker

/// Brings the devices of the persons whom requests are for, a page at a time: asks Redis for the pages as their turns come, and keeps
/// with each request how far it is.
struct Audiences: ~Copyable {
  private var calls: AudienceCalls
  private var pages = AudiencePages()

  init(_ keys: RedisKeys) { calls = AudienceCalls(keys) }

  /// Where a request for a person stands.
  struct Progress {
    /// The application and the person, in the arena.
    let application: ArenaSpan
    let user: ArenaSpan
    /// The same for all devices.
    let entry: RequestEntry
    /// How many devices it went to so far.
    var devices = 0
    /// The last page of devices has come.
    fileprivate(set) var isWhole = false
    /// Devices of the present page that are not yet judged.
    fileprivate var unjudged = 0
    /// The greatest token of the present page: where the next begins.
    fileprivate var last = ArenaSpan()
    /// What the present page holds until it is judged.
    fileprivate var bytes = 0
    /// The verdicts on the devices of the present page.
    private(set) var page: [(token: ArenaSpan, judgement: JournalJudgement)] = []
    /// The sum of all devices so far.
    private(set) var closing = JournalEntry.Closing()

    init(application: ArenaSpan, user: ArenaSpan, entry: RequestEntry) {
      (self.application, self.user, self.entry) = (application, user, entry)
    }

    fileprivate mutating func note(_ token: ArenaSpan, _ judgement: JournalJudgement, in arena: borrowing ByteBuffer) {
      page.append((token, judgement))
      arena.withUnsafeBytes { closing.add(UnsafeRawBufferPointer(rebasing: $0[token])) }
    }

    /// The page's verdicts stand in the journal.
    fileprivate mutating func turn() { page.removeAll(keepingCapacity: true) }
  }

  /// What Redis answered to the question for a page.
  enum Page {
    /// The tokens of devices, in the arena, and what else was in the set.
    case tokens([ArenaSpan], others: [ArenaSpan])
    /// Redis does not have the bucket.
    case lost
    /// No answer of the kind that was asked for.
    case unreadable
  }

  /// What is to be done for a request.
  enum Step {
    /// Devices of its page are still to be judged.
    case wait
    /// Its next page is due.
    case next
    /// All its devices are judged.
    case end
  }

  // MARK: Turns

  /// Whether requests wait for their turn.
  var isWaiting: Bool { pages.isWaiting }

  /// Whether a request may ask for its page now, its page then counting as asked for; otherwise it waits for its turn.
  mutating func mayAsk(_ place: Int32, _ progress: Progress?, isBusy: Bool) -> Bool {
    if !isBusy, !pages.isWaiting, pages.begin() { return true }
    pages.wait(place, isGoing: (progress?.last.count ?? 0) > 0)
    return false
  }

  /// The next request whose turn it is, its page counting as asked for.
  mutating func next() -> Int32? { pages.next() }

  // MARK: A page

  /// Asks for the next page of a request whose turn it is; false when the connection does not take the call.
  mutating func ask(_ record: borrowing InFlightRecord, over redis: RedisConnection, to handler: any RedisReplyHandler, token: UInt64)
    -> Bool
  {
    var isSent = false
    if let progress = record.audience {
      isSent = record.batch.arena.withUnsafeBytes { arena in
        let (user, application, last) = (arena[progress.user], arena[progress.application], arena[progress.last])
        return calls.send(
          user: UnsafeRawBufferPointer(rebasing: user), application: UnsafeRawBufferPointer(rebasing: application),
          after: UnsafeRawBufferPointer(rebasing: last), over: redis, to: handler, token: token)
      }
    }
    if !isSent { pages.came() }
    return isSent
  }

  /// The question for a page has failed.
  mutating func failed() { pages.came() }

  /// Takes a page; its devices are all to be judged, and what is no device's token is to be removed.
  mutating func came(_ reply: RedisReplyView, _ record: inout InFlightRecord) -> Page {
    pages.came()
    if reply.integer == -2 { return .lost }
    guard reply.kind == .array, var progress = record.audience else { return .unreadable }
    var tokens: [ArenaSpan] = []
    var others: [ArenaSpan] = []
    tokens.reserveCapacity(reply.count)
    for index in 0..<reply.count {
      guard let member = reply[index]?.bytes else { return .unreadable }
      let span = record.batch.keep(member)
      if DeviceToken.isValid(member), DeviceToken.isNormal(member) { tokens.append(span) } else { others.append(span) }
      progress.last = span
    }
    progress.isWhole = reply.count < AudienceCalls.pageSize
    progress.unjudged = tokens.count
    progress.bytes = tokens.count * (progress.entry.span.count + RetainedBatch.entryBytes)
    pages.hold(progress.bytes)
    record.audience = progress
    return .tokens(tokens, others: others)
  }

  /// Takes what is no device's token out of a person's set, and answers its key.
  mutating func remove(
    _ members: [ArenaSpan], _ record: borrowing InFlightRecord, over redis: RedisConnection, to handler: any RedisReplyHandler
  )
    -> String
  {
    guard let progress = record.audience else { return "" }
    return record.batch.arena.withUnsafeBytes { arena in
      let user = UnsafeRawBufferPointer(rebasing: arena[progress.user])
      let application = UnsafeRawBufferPointer(rebasing: arena[progress.application])
      let members = members.map { UnsafeRawBufferPointer(rebasing: arena[$0]) }
      calls.remove(members, user: user, application: application, over: redis, to: handler)
      return calls.keys.audience(user: String(decoding: user, as: UTF8.self), application: String(decoding: application, as: UTF8.self))
    }
  }

  /// A device of the present page is judged.
  ///
  /// A device that is not the person's any more does not count: the request did not go to it.
  func judged(_ record: inout InFlightRecord, _ token: ArenaSpan, _ judgement: JournalJudgement) {
    record.audience?.unjudged -= 1
    if judgement.verdict != .wrongUser { record.audience?.devices += 1 }
    record.audience?.note(token, judgement, in: record.batch.arena)
  }

  /// Whether the present page is judged, and all of it worked.
  func isJudged(_ record: borrowing InFlightRecord) -> Bool { record.audience?.unjudged == 0 }

  /// What comes next; a page that is judged holds nothing any more.
  mutating func step(_ record: inout InFlightRecord) -> Step {
    guard let progress = record.audience, progress.unjudged == 0 else { return .wait }
    leave(&record)
    record.audience?.turn()
    return progress.isWhole ? .end : .next
  }

  /// What the present page held is free.
  mutating func leave(_ record: inout InFlightRecord) {
    guard let bytes = record.audience?.bytes else { return }
    record.audience?.bytes = 0
    pages.judged(bytes)
  }
}
