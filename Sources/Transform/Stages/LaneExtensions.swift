import Cryptography
import Extensions

/// The extensions that a lane works with: a notification passes one file's, never half of two.
final class LaneExtensions {
  private let source: InForce<ExtensionsFile>
  private var file: InForce<ExtensionsFile>.Version

  init(_ source: InForce<ExtensionsFile>) {
    self.source = source
    file = source.current
  }

  /// Whether no application has extensions.
  var isEmpty: Bool { source.isCurrent(file) && file.value.isEmpty }

  /// Takes over the file that is in force; the first stage that asks for a request does so.
  ///
  /// - Returns: whether it was another one.
  func update() -> Bool { source.update(&file) }

  /// The extensions of the application with this name hash.
  func chain(application hash: UInt64) -> ExtensionChain? { file.value.chain(application: hash) }
}
