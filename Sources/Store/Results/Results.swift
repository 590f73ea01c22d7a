public import EventLoop
import Notifications
import Redis

/// Results of service extensions, kept for a minute.
///
/// A lane that reads a request again shows the same result without another call. Redis may forget a result: then the extensions are called
/// again.
public final class Results {
  /// What is known of a request before its extensions are called.
  public enum Standing: Sendable, Equatable {
    /// The extensions' result.
    case remembered([UInt8])
    /// Nobody would see it now. It is stale, a duplicate, has no recipient, or was applied and its device is not connected.
    case settled
    /// It is to be shown, as far as the look-up can tell.
    case open
  }

  /// A request to look up; its bytes lie in the arena.
  public struct Request {
    /// The arena of the target and the identifiers.
    let arena: Arena
    let receiver: Receiver
    let entry: RequestEntry

    /// A request from its parts.
    public init(in arena: Arena, _ receiver: Receiver, _ entry: RequestEntry) {
      (self.arena, self.receiver, self.entry) = (arena, receiver, entry)
    }
  }

  /// The key of a result.
  public struct Place: Sendable, Hashable {
    fileprivate let bucket: Int
    fileprivate let revision: Revision
    /// 0 for the result that all recipients share.
    fileprivate var variant: UInt64 = 0

    /// The place of the result for some of the recipients.
    ///
    /// - Parameter variant: a number that is different for each variant of the request.
    public func of(_ variant: UInt64) -> Place {
      var place = self
      place.variant = variant
      return place
    }
  }

  /// The most bytes that Redis keeps for one lane. Further results are not stored.
  private static let maximumBytes = 128 << 20
  /// Longer than the next owner of a partition needs to read its last requests again.
  private static let milliseconds: Int64 = 60_000

  private let shards: Shards
  private let loop: EventLoop
  private let calls = Calls()
  /// The sizes of this lane's results in Redis, and when each expires.
  private var kept: [Place: Int] = [:]
  private var ends: ArraySlice<(place: Place, at: UInt64)> = []
  private var bytes = 0

  /// Makes them for these servers.
  public init(_ shards: Shards, on loop: EventLoop) { (self.shards, self.loop) = (shards, loop) }

  /// Reads how a request stands, and changes nothing.
  static let script = RedisScript(file: "results")

  /// Where the result of a request is kept.
  public func place(of request: Request) -> Place {
    let name =
      switch request.receiver {
      case .device(let token): token
      case .set(let set): set.user
      }
    let bucket = request.arena.bytes.withUnsafeBytes { shards.keys.bucket(of: $0[name]) }
    return Place(bucket: bucket, revision: request.entry.revision)
  }

  /// Looks up how a request stands.
  ///
  /// - Parameter then: called within this call if the call cannot be sent. If the device cannot be read, the request is open: the judge
  ///   reports the device.
  public func look(_ request: Request, at place: Place, _ then: @escaping (Result<Standing, StoreError>) -> Void) {
    calls.command.begin(Self.script, keys: 3)
    append(place)
    calls.command.append(shards.keys.guardKey(place.bucket))
    request.arena.bytes.withUnsafeBytes { arena in
      switch request.receiver {
      case .device(let token):
        calls.command.appendKey("d", place.bucket, arena[token])
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

  /// Reads the result at a place; nil also if Redis has lost it.
  ///
  /// - Parameter then: called within this call if the call cannot be sent.
  public func recall(_ place: Place, _ then: @escaping (Result<[UInt8]?, StoreError>) -> Void) {
    calls.command.begin("GET")
    append(place)
    calls.send(over: shards.shard(of: place.bucket)) { answer in
      // The key has another type: there is no result.
      if case .failure(let error) = answer, error.code == .faulty { return then(.success(nil)) }
      then(answer.map { $0.bytes.map { Array($0) } })
    }
  }

  /// Stores a result for a while. If it does not fit, it is not stored.
  ///
  /// Later calls to the same server find it.
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
    // Another lane may have read the request first and stored its result. That result stays, since it may be shown already.
    calls.command.append("NX")
    calls.command.append("PX")
    calls.command.append(Self.milliseconds)
    calls.send(over: shards.shard(of: place.bucket)) { [weak self] answer in
      guard case .failure = answer, let self, let size = kept.removeValue(forKey: place) else { return }
      bytes -= size
    }
  }

  private func forgetOld(_ now: UInt64) {
    while let end = ends.first, end.at <= now {
      if let size = kept.removeValue(forKey: end.place) { bytes -= size }
      ends.removeFirst()
    }
  }

  private func append(_ place: Place) {
    calls.command.beginKey("x", place.bucket)
    place.revision.withBytes { calls.command.extend($0) }
    if place.variant != 0 { withUnsafeBytes(of: place.variant.bigEndian) { calls.command.extend($0) } }
    calls.command.endArgument()
  }
}
