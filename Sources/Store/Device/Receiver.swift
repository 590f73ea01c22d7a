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
    case .set(let set): set.kind.target(arena[set.name]).hash
    }
  }

  /// The token, if the receiver is one device.
  public var device: ArenaSpan? { if case .device(let token) = self { token } else { nil } }
}

/// The devices of a person that have an application. The names lie in the arena of a request.
public struct RecipientSet {
  /// Whose devices they are.
  enum Kind: CaseIterable {
    /// A person's.
    case person

    /// The first letter of the keys.
    var letter: String {
      switch self {
      case .person: "u"
      }
    }

    /// The scheme of the targets.
    var scheme: String {
      switch self {
      case .person: "user:"
      }
    }

    /// The target of a name.
    func target(_ name: UnsafeRawBufferPointer) -> Target {
      switch self {
      case .person: .user(name)
      }
    }
  }

  let kind: Kind
  /// The name that decides the bucket of the set's key.
  let name: ArenaSpan
  private let application: ArenaSpan

  /// The devices of a person that have an application.
  init(user: ArenaSpan, application: ArenaSpan) { (kind, name, self.application) = (.person, user, application) }

  /// The set's key in Redis.
  func key(in arena: UnsafeRawBufferPointer, _ keys: Keys) -> String {
    keys.recipients(kind, Name(arena[name]), application: Name(arena[application]))
  }

  /// Appends the set's key to a command.
  func appendKey(to command: inout RedisCommand, in arena: UnsafeRawBufferPointer, bucket: Int) {
    command.beginKey(kind.letter, bucket)
    command.extend(arena[application])
    command.extend("/")
    command.extend(arena[name])
    command.endArgument()
  }
}

extension Keys {
  /// The devices of a person for an application.
  func recipients(_ kind: RecipientSet.Kind, _ name: Name, application: Name) -> String {
    "\(kind.letter){\(name.withBytes(bucket))}\(application)/\(name)"
  }

  /// The sets that a registration puts its device into.
  func sets(of registration: Registration) -> [Name] {
    registration.memberships.flatMap { target in
      RecipientSet.Kind.allCases.filter { target.utf8.starts(with: $0.scheme.utf8) }.map { kind in
        // By bytes: a mark at the beginning of the name would belong to the colon's character.
        let name = Name(String(decoding: target.utf8.dropFirst(kind.scheme.utf8.count), as: UTF8.self))
        return Name(recipients(kind, name, application: registration.application))
      }
    }
  }

  /// Whether a value is the key of such a set. Another value was not written by Carillon.
  func isSet(_ key: Name) -> Bool { RecipientSet.Kind.allCases.contains { key.utf8.starts(with: "\($0.letter){".utf8) } }
}
