/// Why a text is not a URL, a pattern for hosts or a network that can be used. The reason of a URL never repeats it: it may contain a secret.
public struct HTTPTextFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// What is wrong, and what to write instead.
  public let description: String
  /// Whether the text is a well-formed URL up to a scheme that is not supported.
  let isOfScheme: Bool

  init(_ description: String, isOfScheme: Bool = false) { (self.description, self.isOfScheme) = (description, isOfScheme) }
}
