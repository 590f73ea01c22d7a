/// The service extensions of an application, in the order in which its mutable notifications pass them.
public struct ExtensionChain: Sendable {
  /// One extension.
  public struct Step: Sendable {
    /// Its name, unique in the chain: what metrics, events and tools call it.
    public let name: String
    /// What it does.
    public let work: any ImmediateExtension

    /// An extension by its name.
    public init(name: String, work: any ImmediateExtension) { (self.name, self.work) = (name, work) }
  }

  /// The application's bundle id.
  public let application: String
  /// The extensions.
  public let steps: [Step]

  /// A chain of extensions.
  public init(application: String, steps: [Step]) {
    (self.application, self.steps) = (application, steps)
    usesLocale = steps.contains { $0.work.usesLocale }
  }

  /// Whether what they do depends on the device's locale.
  public let usesLocale: Bool

  /// The same for locales for which they do the same.
  public func variant(_ locale: String?) -> String {
    steps.lazy.filter(\.work.usesLocale).map { $0.work.variant(locale) }.joined(separator: "\n")
  }
}
