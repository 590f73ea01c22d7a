/// A service extension that only computes. It takes microseconds, and runs on the lane.
public protocol ImmediateExtension: Sendable {
  /// Changes a notification's content.
  ///
  /// - Returns: why it has failed; nil if it has not. After a failure the content is the extension's fallback, which is mostly the
  ///   unchanged content.
  func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure?

  /// The content to show if the extension's result breaks a rule.
  func fallback(for given: MutableContent) -> MutableContent

  /// Whether the result depends on the device's locale. Then a person's devices may get different contents.
  var usesLocale: Bool { get }

  /// Equal for locales with equal results. Called only if the extension uses the locale.
  func variant(_ locale: String?) -> String
}

extension ImmediateExtension {
  /// The given content.
  public func fallback(for given: MutableContent) -> MutableContent { given }
  /// False by default.
  public var usesLocale: Bool { false }
  /// Equal for all locales.
  public func variant(_ locale: String?) -> String { "" }
}
