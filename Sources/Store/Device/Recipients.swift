public import Notifications
import Redis

/// A person's devices for each application: a sorted set of tokens, read in pages.
public final class Recipients {
  /// Devices of a page.
  static let pageSize = 128
  private let shards: Shards
  private let calls = Calls()

  /// Makes them for these servers.
  public init(_ shards: Shards) { self.shards = shards }

  /// The key of a set, for operators.
  public func name(of set: RecipientSet, in arena: UnsafeRawBufferPointer) -> String { set.key(in: arena, shards.keys) }

  // MARK: Pages

  /// A page of a person's devices.
  static let pageScript = RedisScript(file: "recipients-page")

  /// A page as it lies in Redis' answer. Valid only during the call that gets it.
  public struct Page {
    private let reply: RedisReplyView
    /// Whether it was not read, since something is pending for the person: ask the schedules first.
    public var asksSchedules: Bool { reply.integer == -3 }

    fileprivate init(_ reply: RedisReplyView) { self.reply = reply }

    /// How many members it has.
    public var count: Int { reply.count }

    /// Whether this is the last page.
    public var isLast: Bool { reply.count < Recipients.pageSize }

    /// Hands out each member in order, and whether it is a device token. Other members were not added by Carillon.
    public func forEach(_ body: (_ member: UnsafeRawBufferPointer, _ isToken: Bool) -> Void) {
      for index in 0..<reply.count {
        guard let member = reply[index]?.bytes else { continue }
        body(member, DeviceToken.isValid(member) && DeviceToken.isNormal(member))
      }
    }
  }

  /// Reads the page after a member. With no bytes as the member it reads the first page.
  ///
  /// - Parameter isReplacing: whether to look first that nothing is pending for the person.
  public func page(
    of set: RecipientSet, in arena: UnsafeRawBufferPointer, after: UnsafeRawBufferPointer, isReplacing: Bool = false,
    _ then: @escaping (Result<Page, StoreError>) -> Void
  ) {
    let bucket = shards.keys.bucket(of: arena[set.user])
    calls.command.begin(Self.pageScript, keys: isReplacing ? 3 : 2)
    set.appendKey(to: &calls.command, in: arena, bucket: bucket)
    calls.command.append(shards.keys.guardKey(bucket))
    if isReplacing {
      calls.command.beginKey("h", bucket)
      calls.command.extend(RecipientSet.scheme)
      calls.command.extend(arena[set.user])
      calls.command.endArgument()
    }
    if after.isEmpty {
      calls.command.append("-")
    } else {
      calls.command.beginArgument()
      calls.command.extend("(")
      calls.command.extend(after)
      calls.command.endArgument()
    }
    calls.command.append(Self.pageSize)
    calls.send(over: shards.shard(of: bucket)) { answer in
      then(
        answer.flatMap { reply in
          reply.kind == .array || reply.integer == -3
            ? .success(Page(reply)) : .failure(StoreError(.unavailable, "the page of a person's devices cannot be read"))
        })
    }
  }

  // MARK: Members

  /// Adds a device to its sets, which lie in other buckets than the device and may miss it.
  public func add(_ token: String, _ registration: Registration) async throws(StoreError) {
    for set in shards.keys.sets(of: registration) {
      try await set.withBytes(shards.shard(ofKey:)).answer("ZADD", .text(set.text), 0, .text(token))
    }
  }

  /// Adds a device to a set, by the set's key.
  func add(_ token: String, to set: Name, _ then: @escaping (StoreError?) -> Void) {
    calls.command.begin("ZADD")
    calls.command.append(all: [.text(set.text), 0, .text(token)])
    send(to: set, then)
  }

  /// Removes a device from a set, by the set's key.
  func remove(_ token: String, from set: Name, _ then: @escaping (StoreError?) -> Void) {
    calls.command.begin("ZREM")
    calls.command.append(all: [.text(set.text), .text(token)])
    send(to: set, then)
  }

  private func send(to set: Name, _ then: @escaping (StoreError?) -> Void) {
    calls.sendWrite(over: set.withBytes(shards.shard(ofKey:))) { then($0?.about(set.text)) }
  }
}
