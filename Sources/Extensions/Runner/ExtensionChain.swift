import Notifications

/// The service extensions of an application, in the order in which its mutable notifications pass them.
public struct ExtensionChain: Sendable {
  /// One extension.
  public struct Step: Sendable {
    /// What an extension does.
    public enum Work: Sendable {
      /// It computes, and is done at once.
      case immediate(any ImmediateExtension)
      /// It may take its time.
      case called(ExtensionDefinition)
    }

    /// Its name, unique in the chain: what metrics, events and tools call it.
    public let name: String
    /// What it does.
    public let work: Work

    /// An extension by its name.
    public init(name: String, work: Work) { (self.name, self.work) = (name, work) }

    /// An extension that computes, by its name.
    public init(name: String, work: any ImmediateExtension) { self.init(name: name, work: .immediate(work)) }

    /// Whether it may take its time.
    public var isCalled: Bool { if case .called = work { true } else { false } }

    /// It, where what it does depends on the device's locale.
    fileprivate var localized: (any ImmediateExtension)? {
      guard case .immediate(let work) = work, work.usesLocale else { return nil }
      return work
    }
  }

  /// The application's bundle id.
  public let application: String
  /// The extensions.
  public let steps: [Step]
  /// Those up to the last one that may take its time: a request passes them once, whoever gets it.
  public let called: ArraySlice<Step>
  /// Those behind it, which are done at once.
  public let immediate: ArraySlice<Step>
  /// Whether what they do depends on the device's locale.
  public let usesLocale: Bool
  /// Tells it from another of the application: what one has left is not handed on by another.
  public let digest: UInt64

  /// A chain of extensions. Those that may take their time stand before all that depend on the device's locale: they are called once for
  /// a request, whoever gets it. Another order is the caller's mistake.
  ///
  /// - Parameter settings: what they were made of; nothing where that is code.
  public init(application: String, steps: [Step], settings: String = "") {
    precondition(Self.isInOrder(steps), "what is called stands before what depends on the locale")
    (self.application, self.steps) = (application, steps)
    let end = steps.lastIndex { $0.isCalled }.map { $0 + 1 } ?? 0
    (called, immediate) = (steps[..<end], steps[end...])
    usesLocale = steps.contains { $0.localized != nil }
    digest = StableHash.hash(([application, settings] + steps.map(\.name)).joined(separator: "\n"))
  }

  /// Whether what may take its time stands before all that depends on the device's locale.
  static func isInOrder(_ steps: [Step]) -> Bool {
    guard let first = steps.firstIndex(where: { $0.localized != nil }) else { return true }
    return !steps[first...].contains { $0.isCalled }
  }

  /// How many calls each of those takes at the same time that may take their time.
  public var concurrency: Int {
    called.reduce(.max) { least, step in
      if case .called(let definition) = step.work { min(least, definition.limits.concurrency) } else { least }
    }
  }

  /// The same for locales for which they do the same.
  public func variant(_ locale: String?) -> String {
    steps.lazy.compactMap { $0.localized?.variant(locale) }.joined(separator: "\n")
  }
}
