import EventLoop
import Notifications
import Redis

/// Gets the answers of the judge.
public protocol JudgeHandler: AnyObject {
  /// The requests of a call are judged. The answer is valid only during this call.
  func judged(_ requests: [JudgeRequest], _ answer: JudgeAnswer)
  /// A call failed. Its requests may or may not be judged.
  func notJudged(_ requests: [JudgeRequest], _ error: StoreError)
}

/// Collects the requests of a turn and sends many in a call of the judge script.
///
/// Requests for one device keep the order of their records: they share a bucket, hence a server, and a server executes calls in order.
public final class Judge {
  /// How much is remembered of a device.
  public struct Limits: Sendable {
    /// How long an unread mailbox and a revision are kept. The longest lifetime of a notification.
    var lifetimeMilliseconds: Int64
    /// Entries of a mailbox. The script checks the size only for one of 17 new ids, so a mailbox may have 16 more.
    var mailbox: MailboxBounds
    /// Recent apns-ids of a device.
    var ids: Int
    /// Newest revisions of a device, one for each collapse id.
    var revisions: Int

    /// Limits of their parts.
    public init(lifetimeMilliseconds: Int64, mailbox: MailboxBounds, ids: Int, revisions: Int) {
      (self.lifetimeMilliseconds, self.mailbox, self.ids, self.revisions) = (lifetimeMilliseconds, mailbox, ids, revisions)
    }
  }

  /// Judges requests in order, and applies them: the one atomic call of the transform stage.
  static let script = RedisScript(file: "judge")

  private let shards: Shards
  private let limits: Limits
  private let inbox = Inbox()
  /// The requests of this turn, for each server.
  private var waiting: [[JudgeRequest]]
  /// The requests that are being sent. It swaps with `waiting`, so neither array allocates again in each turn.
  private var taken: [JudgeRequest] = []
  private var alone: [JudgeRequest] = []
  private var command = RedisCommand(reserving: 1 << 16)
  /// For each bucket the number of the last call that wrote to it.
  private var buckets: [Int] = []
  private var lastCall: [UInt64]
  private var calls: UInt64 = 0
  /// Requests of a call. A longer call would keep Redis' one thread from all other callers.
  private static let callMaximum = 64

  /// Makes a judge on these servers.
  public init(_ shards: Shards, _ limits: Limits) {
    (self.shards, self.limits) = (shards, limits)
    waiting = Array(repeating: [], count: shards.count)
    lastCall = Array(repeating: 0, count: shards.keys.buckets)
  }

  /// Calls without an answer yet.
  public var callsInFlight: Int { inbox.calls.count }

  /// Gets the answers.
  public var handler: (any JudgeHandler)? {
    get { inbox.handler }
    set { inbox.handler = newValue }
  }

  /// Adds a request to the next call, or to a call of its own.
  public func add(_ request: consuming JudgeRequest, alone isAlone: Bool) {
    request.bucket = request.arena.bytes.withUnsafeBytes { shards.keys.bucket(of: $0[request.token]) }
    if isAlone { alone.append(request) } else { waiting[shards.index(of: request.bucket)].append(request) }
  }

  /// Sends all requests that were added, in calls of similar size.
  ///
  /// - Parameter now: seconds since 1970.
  public func send(now: Int64) {
    // Failures are reported last, since the handler may add requests again.
    var refused: [([JudgeRequest], StoreError)] = []
    for shard in waiting.indices where !waiting[shard].isEmpty {
      swap(&waiting[shard], &taken)
      let calls = (taken.count + Self.callMaximum - 1) / Self.callMaximum
      let order = Self.order(of: taken, isOneCall: calls == 1)
      for call in 0..<calls {
        // A call keeps the order of arrival: the bytes of the requests and the journal's entries lie in this order.
        let places = order[taken.count * call / calls..<taken.count * (call + 1) / calls].sorted()
        send(places.map { taken[$0] }, now, &refused)
      }
      taken.removeAll(keepingCapacity: true)
    }
    for request in alone { send([request], now, &refused) }
    alone.removeAll()
    for (requests, error) in refused { handler?.notJudged(requests, error) }
  }

  /// Orders requests for their distribution to calls. By bucket, so that a call has few buckets to check, then by arrival, since the next
  /// call may continue a bucket.
  private static func order(of requests: [JudgeRequest], isOneCall: Bool) -> [Int] {
    if isOneCall { return Array(requests.indices) }
    return requests.indices.map { requests[$0].bucket << 32 | $0 }.sorted().map { $0 & 0xffff_ffff }
  }

  private func send(_ requests: consuming [JudgeRequest], _ now: Int64, _ refused: inout [([JudgeRequest], StoreError)]) {
    var requests = requests
    for index in requests.indices { requests[index].isExpired = requests[index].entry.end <= now }
    write(requests, now)
    let call = inbox.calls.add(requests)
    let admission = shards.shard(of: requests[0].bucket).send(command, to: inbox, tag: UInt64(call))
    if admission != .accepted, let requests = inbox.calls.take(call) { refused.append((requests, StoreError(admission))) }
  }

  // MARK: A call

  /// Uses a span: requests are large, and reading their parts in an array would copy each.
  private func write(_ list: [JudgeRequest], _ now: Int64) {
    let requests = list.span
    calls += 1
    buckets.removeAll(keepingCapacity: true)
    for index in requests.indices where lastCall[requests[index].bucket] != calls {
      lastCall[requests[index].bucket] = calls
      buckets.append(requests[index].bucket)
    }
    command.begin(Self.script, keys: 2 * requests.count + buckets.count)
    for index in requests.indices {
      requests[index].arena.bytes.withUnsafeBytes { arena in
        appendKey("d", requests[index].bucket, arena[requests[index].token])
        appendKey("m", requests[index].bucket, arena[requests[index].token])
      }
    }
    for bucket in buckets { command.append(shards.keys.guardKey(bucket)) }
    command.append(now)
    command.append(limits.lifetimeMilliseconds)
    command.append(limits.mailbox.away)
    command.append(limits.mailbox.connected)
    command.append(limits.ids)
    command.append(limits.revisions)
    command.beginArgument()
    for index in requests.indices { requests[index].arena.bytes.withUnsafeBytes { command.extend(headOf: requests[index].entry, in: $0) } }
    command.endArgument()
    for index in requests.indices {
      requests[index].arena.bytes.withUnsafeBytes { arena in
        let entry = arena[requests[index].entry.span]
        command.append(requests[index].isExpired ? UnsafeRawBufferPointer(rebasing: entry.prefix(NotificationID.byteCount)) : entry)
      }
    }
  }

  private func appendKey(_ prefix: String, _ bucket: Int, _ token: UnsafeRawBufferPointer) {
    command.beginKey(prefix, bucket)
    command.extend(token)
    command.endArgument()
  }
}

extension RedisCommand {
  /// Appends the head of a request, as the piece `head` describes it, to an open argument.
  mutating func extend(headOf entry: RequestEntry, in arena: UnsafeRawBufferPointer) {
    withUnsafeTemporaryAllocation(byteCount: 75, alignment: 8) { bytes in
      bytes.storeBytes(of: entry.rememberedID.bigEndian, as: UInt64.self)
      bytes.storeBytes(of: entry.source.bigEndian, toByteOffset: 8, as: UInt32.self)
      bytes[12] = (entry.redrive?.rawValue ?? 0) | (entry.removesAll ? 4 : 0) | (entry.isOfPending ? 8 : 0)
      if entry.isBounded { bytes[12] |= 16 }
      if entry.mayReplace { bytes[12] |= 32 }
      if entry.wasKept { bytes[12] |= 64 }
      entry.revision.withBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[13...]).copyMemory(from: $0) }
      bytes.storeBytes(of: entry.application.bigEndian, toByteOffset: 34, as: UInt64.self)
      bytes.storeBytes(of: entry.user.bigEndian, toByteOffset: 42, as: UInt64.self)
      bytes.storeBytes(of: UInt64(max(0, entry.time)).bigEndian, toByteOffset: 50, as: UInt64.self)
      var terms = entry.user == 0 ? 8 : 24
      if let id = entry.withdraws {
        id.withBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[58...]).copyMemory(from: $0) }
        terms = 40
      }
      bytes[33] = UInt8(terms)
      bytes[34 + terms] = entry.collapseID.count > 0 ? UInt8(entry.collapseID.count + 1) : 0
      extend(UnsafeRawBufferPointer(rebasing: bytes[..<(35 + terms)]))
    }
    guard entry.collapseID.count > 0 else { return }
    extend("c")
    extend(arena[entry.collapseID])
  }
}

/// The calls in flight. A call allocates only its list of requests.
private final class Inbox: RedisReplyHandler {
  var calls = SlotTable<[JudgeRequest]>()
  weak var handler: (any JudgeHandler)?

  func redisReplied(tag: UInt64, reply: RedisReplyView) {
    guard let requests = calls.take(Int(tag)) else { return }
    if reply.isBucketLost { handler?.notJudged(requests, .bucketLost) } else { handler?.judged(requests, JudgeAnswer(reply, requests)) }
  }

  func redisFailed(tag: UInt64, error: RedisError) {
    if let requests = calls.take(Int(tag)) { handler?.notJudged(requests, StoreError(error)) }
  }
}

/// The judge's answer on the requests of a call, as it lies in Redis' reply.
public struct JudgeAnswer {
  /// The verdict on each request; nil for an unknown verdict and for all requests after it.
  public let verdicts: [Verdict?]
  private let reply: RedisReplyView

  init(_ reply: RedisReplyView, _ requests: [JudgeRequest]) {
    self.reply = reply
    let bytes = reply[0]?.bytes ?? .empty
    // All verdicts come first, then the details of each.
    var (verdictBytes, parts) = (ByteReader(bytes), ByteReader(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(requests.count))))
    let requests = requests.span
    var verdicts: [Verdict?] = []
    verdicts.reserveCapacity(requests.count)
    for index in requests.indices {
      guard let byte = verdictBytes.byte(),
        let verdict = Verdict(byte, &parts, revision: requests[index].entry.revision, isExpired: requests[index].isExpired)
      else { break }
      verdicts.append(verdict)
    }
    while verdicts.count < requests.count { verdicts.append(nil) }
    self.verdicts = verdicts
  }

  /// Hands out what requests have found in mailboxes, with the index of the request.
  public func forEachFinding(_ body: (_ request: Int, _ found: Finding) -> Void) {
    for place in stride(from: 1, to: reply.count, by: 1) {
      guard let number = reply[place]?.integer else { continue }
      let index = Int(clamping: number.magnitude) - 1
      if verdicts.indices.contains(index) { body(index, number < 0 ? .removalOfAll : .overflow) }
    }
  }

  /// What a request has found in a mailbox.
  public enum Finding {
    /// More than the mailbox may keep: `Mailboxes.evict` answers what it is to lose.
    case overflow
    /// The request is a removal of all, and there are entries: `Mailboxes.cancel` answers which of them it cancels.
    case removalOfAll
  }
}
