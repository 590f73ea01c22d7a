public import Notifications

/// The service extensions of an application, in the order in which they change a mutable notification.
public struct ExtensionChain: Sendable {
  /// One extension.
  public struct Step: Sendable {
    /// The kinds of extensions.
    public enum Work: Sendable {
      /// It computes, and finishes at once.
      case immediate(any ImmediateExtension)
      /// It may take long.
      case called(ExtensionDefinition)
    }

    /// Its name, unique in the chain, for metrics, events and tools.
    public let name: String
    /// Its kind.
    public let work: Work

    /// An extension by its name.
    public init(name: String, work: Work) { (self.name, self.work) = (name, work) }

    /// An extension that computes, by its name.
    public init(name: String, work: any ImmediateExtension) { self.init(name: name, work: .immediate(work)) }

    /// Whether it may take long.
    public var isCalled: Bool { if case .called = work { true } else { false } }

    /// How often it is called; nil if it only computes.
    fileprivate var scope: ExtensionDefinition.Scope? {
      if case .called(let definition) = work { definition.limits.scope } else { nil }
    }

    /// Whether its result depends on the recipient.
    fileprivate var isVaried: Bool { localized != nil || scope == .locale || scope == .device }

    /// The extension, if its result depends on the device's locale.
    fileprivate var localized: (any ImmediateExtension)? {
      guard case .immediate(let work) = work, work.usesLocale else { return nil }
      return work
    }
  }

  /// The application's bundle id.
  public let application: Name
  /// The extensions.
  public let steps: [Step]
  /// The extensions up to the last one that is called for the request. They run once for all recipients.
  public let called: ArraySlice<Step>
  /// The extensions after these, up to the last called one. They run for each locale, or for each device, of the recipients.
  public let varied: ArraySlice<Step>
  /// The remaining extensions, which finish at once.
  public let immediate: ArraySlice<Step>
  /// How often those of ``varied`` run.
  public let scope: ExtensionDefinition.Scope
  /// Whether their results depend on the device's locale.
  public let usesLocale: Bool
  /// Distinguishes it from other chains of the application, so that no result is used for another chain.
  public let digest: UInt64

  /// Makes a chain of extensions. Those that are called once for a request come before all that depend on the recipient. Another order is
  /// the caller's mistake.
  ///
  /// - Parameter settings: the settings that they were made from; empty for code.
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

  /// Whether all extensions that are called for some of the recipients have the same scope.
  static func hasOneScope(_ steps: [Step]) -> Bool { !steps.contains { $0.scope == .locale } || !steps.contains { $0.scope == .device } }

  /// Whether the extensions that are called once come before all that depend on the recipient.
  static func isInOrder(_ steps: [Step]) -> Bool {
    guard let first = steps.firstIndex(where: { $0.isVaried }) else { return true }
    return !steps[first...].contains { $0.scope == .request }
  }

  /// How many calls each of the slow extensions takes at the same time.
  public var concurrency: Int {
    steps.reduce(.max) { least, step in
      if case .called(let definition) = step.work { min(least, definition.limits.concurrency) } else { least }
    }
  }

  /// Equal for devices with equal results of the called extensions; nil if all devices have the same.
  ///
  /// - Parameter device: its token.
  public func variant(of device: @autoclosure () -> String, _ locale: String?) -> Name? {
    switch scope {
    case .request: nil
    case .locale: "locale \(locale ?? "")"
    case .device: "device \(device())"
    }
  }

  /// Equal for locales with equal results of the computing extensions.
  public func texts(_ locale: String?) -> String { steps.lazy.compactMap { $0.localized?.variant(locale) }.joined(separator: "\n") }
}
