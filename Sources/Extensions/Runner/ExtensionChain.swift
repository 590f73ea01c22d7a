public import Notifications

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

    /// For whom it is called; nil where it computes.
    fileprivate var scope: ExtensionDefinition.Scope? {
      if case .called(let definition) = work { definition.limits.scope } else { nil }
    }

    /// Whether what it makes of a notification depends on who gets it.
    fileprivate var isVaried: Bool { localized != nil || scope == .locale || scope == .device }

    /// It, where what it does depends on the device's locale.
    fileprivate var localized: (any ImmediateExtension)? {
      guard case .immediate(let work) = work, work.usesLocale else { return nil }
      return work
    }
  }

  /// The application's bundle id.
  public let application: Name
  /// The extensions.
  public let steps: [Step]
  /// Those up to the last one that is called for the request: it passes them once, whoever gets it.
  public let called: ArraySlice<Step>
  /// Those behind it up to the last one that is called: a request passes them for each locale, or for each device, of those who get it.
  public let varied: ArraySlice<Step>
  /// Those behind these, which are done at once.
  public let immediate: ArraySlice<Step>
  /// For whom those of ``varied`` are passed.
  public let scope: ExtensionDefinition.Scope
  /// Whether what they do depends on the device's locale.
  public let usesLocale: Bool
  /// Tells it from another of the application: what one has left is not handed on by another.
  public let digest: UInt64

  /// A chain of extensions. Those that are called once for a request stand before all that depend on who gets it. Another order is the
  /// caller's mistake.
  ///
  /// - Parameter settings: what they were made of; nothing where that is code.
  public init(application: Name, steps: [Step], settings: String = "") {
    precondition(
      Self.isInOrder(steps) && Self.hasOneScope(steps), "what is called for the request stands before what depends on who gets it")
    (self.application, self.steps) = (application, steps)
    let end = steps.lastIndex { $0.scope == .request }.map { $0 + 1 } ?? 0
    let last = steps.lastIndex { $0.isCalled }.map { $0 + 1 } ?? 0
    (called, varied, immediate) = (steps[..<end], steps[end..<last], steps[last...])
    scope = varied.contains { $0.scope == .device } ? .device : varied.isEmpty ? .request : .locale
    usesLocale = scope == .locale || steps.contains { $0.localized != nil }
    digest = StableHash.hash(([application.text, settings] + steps.map(\.name)).joined(separator: "\n"))
  }

  /// Whether those that are called for some of those who get a notification are called for the same.
  static func hasOneScope(_ steps: [Step]) -> Bool { !steps.contains { $0.scope == .locale } || !steps.contains { $0.scope == .device } }

  /// Whether what is called once for a request stands before all that depends on who gets it.
  static func isInOrder(_ steps: [Step]) -> Bool {
    guard let first = steps.firstIndex(where: { $0.isVaried }) else { return true }
    return !steps[first...].contains { $0.scope == .request }
  }

  /// How many calls each of those takes at the same time that may take their time.
  public var concurrency: Int {
    steps.reduce(.max) { least, step in
      if case .called(let definition) = step.work { min(least, definition.limits.concurrency) } else { least }
    }
  }

  /// The same for devices for which those that are called do the same; nil where that is so for all.
  ///
  /// - Parameter device: its token.
  public func variant(of device: @autoclosure () -> String, _ locale: String?) -> Name? {
    switch scope {
    case .request: nil
    case .locale: "locale \(locale ?? "")"
    case .device: "device \(device())"
    }
  }

  /// The same for locales for which those that compute do the same.
  public func texts(_ locale: String?) -> String { steps.lazy.compactMap { $0.localized?.variant(locale) }.joined(separator: "\n") }
}
