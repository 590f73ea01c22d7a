import Notifications
import Redis
import Worker

/// Asks Redis for the devices of a person, a page at a time.
struct AudienceCalls: ~Copyable {
  /// Devices to a page.
  static let pageSize = 128
  private let keys: RedisKeys
  private var command = RedisCommand()

  init(_ keys: RedisKeys) { self.keys = keys }

  /// Asks for the page behind a token; false when the connection does not take the call.
  mutating func send(
    user: UnsafeRawBufferPointer, application: UnsafeRawBufferPointer, after: UnsafeRawBufferPointer, over redis: RedisConnection,
    to handler: any RedisReplyHandler, token: UInt64
  ) -> Bool {
    command.begin("ZRANGEBYLEX")
    command.beginArgument()
    command.extend("u{")
    command.extend(keys.bucket(of: user))
    command.extend("}")
    command.extend(application)
    command.extend("/")
    command.extend(user)
    command.endArgument()
    if after.isEmpty {
      command.append("-")
    } else {
      command.beginArgument()
      command.extend("(")
      command.extend(after)
      command.endArgument()
    }
    command.append("+")
    command.append("LIMIT")
    command.append(0)
    command.append(Self.pageSize)
    return redis.send(command, to: handler, token: token) == .accepted
  }
}
