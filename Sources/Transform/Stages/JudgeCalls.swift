import Notifications
import Redis
import Worker

/// One request for one device, to be judged.
struct DeviceRequest {
  /// The record that it comes from.
  let slot: Flow.Slot
  /// The batch whose arena has the token and the entry.
  let batch: RetainedBatch
  /// The device's token.
  let token: ArenaSpan
  /// What it gets.
  let entry: RequestEntry
  /// It has expired already when it is judged.
  let isExpired: Bool
}

/// Collects the requests of a batch by bucket and sends them, several to a call, to the judge.
///
/// All requests for one device go in the order of their records, since they share a bucket and calls are made in order.
struct JudgeCalls: ~Copyable {
  /// Calls in flight, by their token.
  private var calls = NumberedPlaces<[DeviceRequest]>()
  private var buckets: [[DeviceRequest]]
  private var filled: [Int] = []
  private var command = RedisCommand(reserving: 1 << 16)
  private let keys: RedisKeys
  private let settings: TransformSettings
  /// Requests to a call at most: a longer call would hold the one thread of Redis for all others.
  private static let most = 64

  init(_ settings: TransformSettings) {
    keys = settings.keys
    self.settings = settings
    buckets = Array(repeating: [], count: settings.keys.buckets)
  }

  /// Requests that go alone.
  private var singles: [DeviceRequest] = []

  /// Notes a request to be judged in a call of its own.
  mutating func add(alone request: DeviceRequest) { singles.append(request) }

  /// Notes a request; it is sent with the others of its bucket.
  mutating func add(_ request: DeviceRequest) {
    let bucket = bucket(of: request)
    if buckets[bucket].isEmpty { filled.append(bucket) }
    buckets[bucket].append(request)
  }

  /// Sends all that was noted. `refused` gets what the connection does not take.
  mutating func send(
    over redis: RedisConnection, to handler: any RedisReplyHandler, tag: UInt64, now: Int64, refused: ([DeviceRequest]) -> Void
  ) {
    for bucket in filled {
      var start = 0
      while start < buckets[bucket].count {
        let end = min(start + Self.most, buckets[bucket].count)
        let call = begin(buckets[bucket][start..<end], bucket, now)
        if redis.send(command, to: handler, token: tag | UInt64(call)) != .accepted { refused(take(call)) }
        start = end
      }
      buckets[bucket].removeAll(keepingCapacity: true)
    }
    filled.removeAll(keepingCapacity: true)
    for request in singles {
      let call = begin(CollectionOfOne(request), bucket(of: request), now)
      if redis.send(command, to: handler, token: tag | UInt64(call)) != .accepted { refused(take(call)) }
    }
    singles.removeAll()
  }

  /// Writes a call of these requests, and answers its place.
  private mutating func begin(_ requests: some Sequence<DeviceRequest>, _ bucket: Int, _ now: Int64) -> Int {
    let requests = Array(requests)
    write(requests, bucket, now)
    return calls.add(requests)
  }

  private func bucket(of request: DeviceRequest) -> Int {
    request.batch.arena.withUnsafeBytes { keys.bucket(of: UnsafeRawBufferPointer(rebasing: $0[request.token])) }
  }

  /// The requests of a call that was answered; its place is free afterwards.
  mutating func take(_ call: Int) -> [DeviceRequest] { calls.take(call) ?? [] }

  private mutating func write(_ requests: [DeviceRequest], _ bucket: Int, _ now: Int64) {
    command.begin(JudgeScript.script, keys: 2 * requests.count + 1)
    for request in requests {
      request.batch.arena.withUnsafeBytes { arena in
        let token = UnsafeRawBufferPointer(rebasing: arena[request.token])
        key("d", bucket, token)
        key("m", bucket, token)
      }
    }
    command.append(keys.guardKey(bucket))
    command.append(now)
    command.append(settings.longestLifetime * 1000)
    command.append(settings.mailboxBound)
    command.append(settings.rememberedIDs)
    command.append(settings.rememberedRevisions)
    for request in requests {
      request.batch.arena.withUnsafeBytes { arena in
        write(request, UnsafeRawBufferPointer(rebasing: arena[request.entry.span]))
      }
    }
  }

  private mutating func key(_ prefix: String, _ bucket: Int, _ token: UnsafeRawBufferPointer) {
    command.beginArgument()
    command.extend(prefix)
    command.extend("{")
    command.extend(bucket)
    command.extend("}")
    command.extend(token)
    command.endArgument()
  }

  private mutating func write(_ request: DeviceRequest, _ entry: UnsafeRawBufferPointer) {
    let terms = request.entry
    withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { bytes in
      bytes.storeBytes(of: terms.id.bigEndian, as: UInt64.self)
      bytes.storeBytes(of: terms.source.bigEndian, toByteOffset: 8, as: UInt32.self)
      command.append(UnsafeRawBufferPointer(rebasing: bytes[..<12]))
    }
    terms.revision.withBytes { command.append($0) }
    command.beginArgument()
    if let view = DeliveryEntryView(entry), !view.collapseID.isEmpty {
      command.extend("c")
      command.extend(view.collapseID)
    }
    command.endArgument()
    command.append(entry)
    withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { bytes in
      bytes.storeBytes(of: request.isExpired ? 1 : 0, as: UInt8.self)
      bytes.storeBytes(of: terms.application.bigEndian, toByteOffset: 1, as: UInt64.self)
      bytes.storeBytes(of: terms.user.bigEndian, toByteOffset: 9, as: UInt64.self)
      bytes.storeBytes(of: UInt64(max(0, terms.time)).bigEndian, toByteOffset: 17, as: UInt64.self)
      var count = 25
      if let id = terms.withdraws {
        id.withBytes { id in UnsafeMutableRawBufferPointer(rebasing: bytes[25...]).copyMemory(from: id) }
        count += NotificationID.byteCount
      }
      command.append(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    }
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes of a stretch.
  subscript(span: ArenaSpan) -> Slice<UnsafeRawBufferPointer> { self[span.start..<span.start + span.count] }
}
