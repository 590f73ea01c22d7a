import Notifications
import Redis

/// The receiver of a request. Its names lie in the request's arena.
public enum Receiver {
  /// The device of this token.
  case device(ArenaSpan)
  /// The devices of a set, which are looked up.
  case set(RecipientSet)

  /// The token, if the receiver is one device.
  public var device: ArenaSpan? { if case .device(let token) = self { token } else { nil } }
}

/// The devices of a person that have an application. The names lie in the arena of a request.
public struct RecipientSet {
  private let user: ArenaSpan
  private let application: ArenaSpan

  /// The devices of a person that have an application.
  public init(user: ArenaSpan, application: ArenaSpan) { (self.user, self.application) = (user, application) }

  /// The name that decides the bucket of the set's key.
  var name: ArenaSpan { user }

  /// The set's key in Redis.
  func key(in arena: UnsafeRawBufferPointer, _ keys: Keys) -> String {
    keys.recipients(user: Name(arena[user]), application: Name(arena[application]))
  }

  /// Appends the set's key to a command.
  func appendKey(to command: inout RedisCommand, in arena: UnsafeRawBufferPointer, bucket: Int) {
    command.beginKey("u", bucket)
    command.extend(arena[application])
    command.extend("/")
    command.extend(arena[user])
    command.endArgument()
  }
}
