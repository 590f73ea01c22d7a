import Synchronization

/// The extensions that are in force in a process: read by its lanes, replaced while they run.
public final class ExtensionsSource: Sendable {
  /// The extensions of a file, and which replacement brought them.
  public struct Version: Sendable {
    /// The extensions.
    public let extensions: ExtensionsFile
    fileprivate let number: Int
  }

  private let version: Mutex<Version>
  /// The number of the version, so that who has it already need not take the lock.
  private let number = Atomic(0)

  private let hasNone: Atomic<Bool>

  /// The extensions of a file; none where none is given.
  public init(_ extensions: ExtensionsFile = ExtensionsFile()) {
    version = Mutex(Version(extensions: extensions, number: 0))
    hasNone = Atomic(extensions.isEmpty)
  }

  /// Whether no application has extensions.
  public var isEmpty: Bool { hasNone.load(ordering: .relaxed) }

  /// What is in force.
  public var current: Version { version.withLock { $0 } }

  /// Takes over what is in force; it costs next to nothing where that is what `known` has.
  ///
  /// - Returns: whether it was something else.
  public func update(_ known: inout Version) -> Bool {
    guard number.load(ordering: .relaxed) != known.number else { return false }
    known = current
    return true
  }

  /// Puts other extensions in force. What is under way goes on with those that it began with.
  public func replace(with extensions: ExtensionsFile) {
    version.withLock {
      $0 = Version(extensions: extensions, number: $0.number + 1)
      number.store($0.number, ordering: .relaxed)
      hasNone.store(extensions.isEmpty, ordering: .relaxed)
    }
  }
}
