import Notifications
import Redis
import Worker

/// Asks Redis for the devices of a person, a page at a time.
struct AudienceCalls: ~Copyable {
  /// Devices to a page.
  static let pageSize = 128
  /// A page of an audience.
  ///
  /// Keys: the audience, what must be there when its bucket is used. Arguments: behind which token (`-`: from the first), how many.
  /// Answers the tokens, or -2 where Redis has lost the bucket: an audience that is gone is not an audience of nobody.
  static let script = RedisScript(
    """
    if redis.call('EXISTS', KEYS[2]) == 0 then return -2 end
    return redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], '+', 'LIMIT', 0, ARGV[2])
    """)
  let keys: RedisKeys
  private var command = RedisCommand()

  init(_ keys: RedisKeys) { self.keys = keys }

  /// Asks for the page behind a token; false when the connection does not take the call.
  mutating func send(
    user: UnsafeRawBufferPointer, application: UnsafeRawBufferPointer, after: UnsafeRawBufferPointer, over redis: RedisConnection,
    to handler: any RedisReplyHandler, token: UInt64
  ) -> Bool {
    let bucket = keys.bucket(of: user)
    command.begin(Self.script, keys: 2)
    key(bucket, user, application)
    command.append(keys.guardKey(bucket))
    if after.isEmpty {
      command.append("-")
    } else {
      command.beginArgument()
      command.extend("(")
      command.extend(after)
      command.endArgument()
    }
    command.append(Self.pageSize)
    return redis.send(command, to: handler, token: token) == .accepted
  }

  /// Takes members out of the set that are no devices.
  mutating func remove(
    _ members: [UnsafeRawBufferPointer], user: UnsafeRawBufferPointer, application: UnsafeRawBufferPointer, over redis: RedisConnection,
    to handler: any RedisReplyHandler
  ) {
    command.begin("ZREM")
    key(keys.bucket(of: user), user, application)
    for member in members { command.append(member) }
    // What stays is found again.
    _ = redis.send(command, to: handler, token: 0)
  }

  private mutating func key(_ bucket: Int, _ user: UnsafeRawBufferPointer, _ application: UnsafeRawBufferPointer) {
    command.beginArgument()
    command.extend("u{")
    command.extend(bucket)
    command.extend("}")
    command.extend(application)
    command.extend("/")
    command.extend(user)
    command.endArgument()
  }
}
