import Synchronization

/// A value that all loops of a process use, and that may be replaced at any time: a certificate, keys, what a file says.
public final class InForce<Value: Sendable>: Sendable {
  /// A value, with the number of its replacement.
  public struct Version: Sendable {
    /// The value.
    public let value: Value
    fileprivate let number: Int
  }

  private let version: Mutex<Version>
  /// The number of the version, so that a reader with the present one needs no lock.
  private let number = Atomic(0)

  /// Begins with a value.
  public init(_ value: Value) { version = Mutex(Version(value: value, number: 0)) }

  /// The present version.
  public var current: Version { version.withLock { $0 } }

  /// The present value.
  public var value: Value { current.value }

  /// Whether a version is the present one. It costs one load.
  public func isCurrent(_ known: Version) -> Bool { number.load(ordering: .relaxed) == known.number }

  /// Updates `known` to the present version.
  ///
  /// - Returns: whether it has changed.
  public func update(_ known: inout Version) -> Bool {
    guard !isCurrent(known) else { return false }
    known = current
    return true
  }

  /// Replaces the value. Whoever uses the former one finishes with it.
  public func replace(with value: Value) {
    version.withLock {
      $0 = Version(value: value, number: $0.number + 1)
      number.store($0.number, ordering: .relaxed)
    }
  }
}
