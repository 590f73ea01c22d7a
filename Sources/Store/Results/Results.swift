public import EventLoop
import Notifications
import Redis

/// What service extensions have left of requests, kept for a while: whoever is given a request again shows the same, and asks nobody.
/// Loop-confined.
///
/// It is a memory, not a record: what Redis does not keep is made again.
public final class Results {
  /// What is known of a request before its extensions are called.
  public enum Standing: Sendable, Equatable {
    /// They have left this.
    case remembered([UInt8])
    /// Nobody would be shown it now: it was applied and its device is not connected, is a duplicate, is stale, or reaches nobody.
    case settled
    /// It is to be shown, as far as can be told.
    case open
  }

  /// A request as it is looked for: its bytes lie in the arena.
  public struct Request {
    /// Has the target and the identifiers.
    let arena: Arena
    let receiver: Receiver
    let entry: RequestEntry

    /// A request from its parts.
    public init(in arena: Arena, _ receiver: Receiver, _ entry: RequestEntry) {
      (self.arena, self.receiver, self.entry) = (arena, receiver, entry)
    }
  }

  /// Where a result is kept.
  public struct Place: Sendable, Hashable {
    fileprivate let bucket: Int
    fileprivate let revision: Revision
    /// 0: of the request, whoever gets it.
    fileprivate var variant: UInt64 = 0

    /// The place of what was made for some of those who get the request.
    ///
    /// - Parameter variant: tells it from the others of the request.
    public func of(_ variant: UInt64) -> Place {
      var place = self
      place.variant = variant
      return place
    }
  }

  /// What one lane has Redis keep at most, in bytes; what comes beyond it is not remembered.
  private static let maximumBytes = 128 << 20
  /// For how long: longer than it takes until the next owner of a partition has read its last requests again.
  private static let milliseconds: Int64 = 60_000

  private let shards: Shards
  private let loop: EventLoop
  private let calls = Calls()
  /// What Redis keeps for this lane, and when it forgets it.
  private var kept: [Place: Int] = [:]
  private var ends: [(place: Place, at: UInt64)] = []
  private var oldest = 0
  private var bytes = 0

  /// Of these servers.
  public init(_ shards: Shards, on loop: EventLoop) { (self.shards, self.loop) = (shards, loop) }

  /// Reads one request's standing, and changes nothing.
  static let script = RedisScript(file: PackageResources.results_lua)

  /// Where the result of a request is kept.
  public func place(of request: Request) -> Place {
    let name =
      switch request.receiver {
      case .device(let token): token
      case .set(let set): set.name
      }
    let bucket = request.arena.bytes.withUnsafeBytes { shards.keys.bucket(of: $0[name]) }
    return Place(bucket: bucket, revision: request.entry.revision)
  }

  /// Finds out how a request stands.
  ///
  /// - Parameter then: may be called during this call, where it cannot be sent. What cannot be read of a device is the judge's to say: such a
  ///   request is open.
  public func look(_ request: Request, at place: Place, _ then: @escaping (Result<Standing, StoreError>) -> Void) {
    calls.command.begin(Self.script, keys: 3)
    append(place)
    calls.command.append(shards.keys.guardKey(place.bucket))
    request.arena.bytes.withUnsafeBytes { arena in
      switch request.receiver {
      case .device(let token):
        calls.command.beginKey("d", place.bucket)
        calls.command.extend(arena[token])
        calls.command.endArgument()
        calls.command.beginArgument()
        calls.command.extend(headOf: request.entry, in: arena)
        calls.command.endArgument()
        calls.command.append(UnsafeRawBufferPointer(rebasing: arena[request.entry.span].prefix(NotificationID.byteCount)))
      case .set(let set): set.appendKey(to: &calls.command, in: arena, bucket: place.bucket)
      }
    }
    calls.send(over: shards.shard(of: place.bucket)) { answer in
      switch answer {
      case .success(let reply):
        if let integer = reply.integer { return then(.success(integer == 0 ? .settled : .open)) }
        then(.success(reply.bytes.map { .remembered(Array($0)) } ?? .open))
      case .failure(let error): then(error.code == .faulty ? .success(.open) : .failure(error))
      }
    }
  }

  /// What is remembered at a place; nil also where Redis has lost it.
  ///
  /// - Parameter then: may be called during this call, where it cannot be sent.
  public func recall(_ place: Place, _ then: @escaping (Result<[UInt8]?, StoreError>) -> Void) {
    calls.command.begin("GET")
    append(place)
    calls.send(over: shards.shard(of: place.bucket)) { answer in
      // Something else lies there: nothing is remembered.
      if case .failure(let error) = answer, error.code == .faulty { return then(.success(nil)) }
      then(answer.map { $0.bytes.map { Array($0) } })
    }
  }

  /// Has Redis keep a result for a while; what does not fit is not kept.
  ///
  /// What is asked of the same server later finds it there.
  public func remember(_ result: [UInt8], at place: Place) {
    let now = loop.milliseconds()
    forgetOld(now)
    guard bytes + result.count <= Self.maximumBytes, kept[place] == nil else { return }
    kept[place] = result.count
    bytes += result.count
    ends.append((place, now + UInt64(Self.milliseconds)))
    calls.command.begin("SET")
    append(place)
    result.withUnsafeBytes { calls.command.append($0) }
    // Who was given the request first may have remembered it, and may have been asked what it is since.
    calls.command.append("NX")
    calls.command.append("PX")
    calls.command.append(Self.milliseconds)
    calls.send(over: shards.shard(of: place.bucket)) { [weak self] answer in
      guard case .failure = answer, let self, let size = kept.removeValue(forKey: place) else { return }
      bytes -= size
    }
  }

  private func forgetOld(_ now: UInt64) {
    while oldest < ends.count, ends[oldest].at <= now {
      if let size = kept.removeValue(forKey: ends[oldest].place) { bytes -= size }
      oldest += 1
    }
    if oldest > 1024, oldest > ends.count / 2 {
      ends.removeFirst(oldest)
      oldest = 0
    }
  }

  private func append(_ place: Place) {
    calls.command.beginKey("x", place.bucket)
    place.revision.withBytes { calls.command.extend($0) }
    if place.variant != 0 { withUnsafeBytes(of: place.variant.bigEndian) { calls.command.extend($0) } }
    calls.command.endArgument()
  }
}
