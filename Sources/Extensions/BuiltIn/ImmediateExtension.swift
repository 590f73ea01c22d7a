/// A service extension that computes, and needs nothing that it would have to wait for: it is done within microseconds, on the lane.
public protocol ImmediateExtension: Sendable {
  /// Changes a notification's content.
  ///
  /// - Returns: why it has failed, nil when it has not. After a failure the content is what the extension wants to have shown instead: most
  ///   leave it as it was.
  func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure?

  /// What is shown where the content that it has left breaks a rule.
  func fallback(for given: MutableContent) -> MutableContent

  /// Whether what it does depends on the device's locale; then a person's devices may get different contents.
  var usesLocale: Bool { get }

  /// The same for locales for which it does the same; asked only where it uses the locale.
  func variant(_ locale: String?) -> String
}

extension ImmediateExtension {
  /// What it was given.
  public func fallback(for given: MutableContent) -> MutableContent { given }
  /// It does not, unless it says so.
  public var usesLocale: Bool { false }
  /// It does the same for all.
  public func variant(_ locale: String?) -> String { "" }
}
