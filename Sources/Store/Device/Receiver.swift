public import Notifications
import Redis

/// The receiver of a request. Its names lie in the request's arena.
public enum Receiver {
  /// The device of this token.
  case device(ArenaSpan)
  /// The devices of a set, which are looked up.
  case set(RecipientSet)

  /// The receiver that a target names for an application; its names are kept in the arena.
  public init(_ target: Target, application: UnsafeRawBufferPointer, in arena: Arena) {
    switch target {
    case .device(let token): self = .device(arena.keep { DeviceToken.append(token, to: &$0) })
    case .user(let user): self = .set(RecipientSet(user: arena.keep(user), application: arena.keep(application)))
    }
  }

  /// The hash of its target, the same however the target is written.
  public func targetHash(in arena: UnsafeRawBufferPointer) -> UInt64 {
    switch self {
    case .device(let token): StableHash.hash(arena[token])
    case .set(let set): Target.user(arena[set.user]).hash
    }
  }

  /// The token, if the receiver is one device.
  public var device: ArenaSpan? { if case .device(let token) = self { token } else { nil } }
}

/// The devices of a person that have an application. The names lie in the arena of a request.
public struct RecipientSet {
  /// The scheme of the targets.
  static let scheme = "user:"

  /// The person, whose name decides the bucket of the set's key.
  let user: ArenaSpan
  let application: ArenaSpan

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

extension Keys {
  /// The devices of a person for an application.
  func recipients(user: Name, application: Name) -> String { "u{\(user.withBytes(bucket))}\(application)/\(user)" }

  /// The sets that a registration puts its device into.
  func sets(of registration: Registration) -> [Name] {
    registration.memberships.compactMap { name(ofTarget: $0, RecipientSet.scheme) }.map { user in
      Name(recipients(user: Name(user), application: registration.application))
    }
  }

  /// Whether a value is the key of such a set. Another value was not written by Carillon.
  func isSet(_ key: Name) -> Bool { key.utf8.starts(with: "u{".utf8) }
}
