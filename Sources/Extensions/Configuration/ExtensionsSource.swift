import Synchronization

/// The present extensions of a process. Its lanes read them, and they can be replaced meanwhile.
public final class ExtensionsSource: Sendable {
  /// The extensions of a file, with the number of their replacement.
  public struct Version: Sendable {
    /// The extensions.
    public let extensions: ExtensionsFile
    fileprivate let number: Int
  }

  private let version: Mutex<Version>
  /// The number of the version, so that a reader with the present one needs no lock.
  private let number = Atomic(0)

  private let hasNone: Atomic<Bool>

  /// Begins with the extensions of a file, or with none.
  public init(_ extensions: ExtensionsFile = ExtensionsFile()) {
    version = Mutex(Version(extensions: extensions, number: 0))
    hasNone = Atomic(extensions.isEmpty)
  }

  /// Whether no application has extensions.
  public var isEmpty: Bool { hasNone.load(ordering: .relaxed) }

  /// The present version.
  public var current: Version { version.withLock { $0 } }

  /// Updates `known` to the present version. It is very cheap if nothing has changed.
  ///
  /// - Returns: whether it has changed.
  public func update(_ known: inout Version) -> Bool {
    guard number.load(ordering: .relaxed) != known.number else { return false }
    known = current
    return true
  }

  /// Replaces the extensions. Running calls continue with their former ones.
  public func replace(with extensions: ExtensionsFile) {
    version.withLock {
      $0 = Version(extensions: extensions, number: $0.number + 1)
      number.store($0.number, ordering: .relaxed)
      hasNone.store(extensions.isEmpty, ordering: .relaxed)
    }
  }
}
