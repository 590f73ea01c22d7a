/// A member of a registration, a frame or a file does not keep its rule.
///
/// The texts are the program's own and name places only, so they may be logged and sent to the device.
public struct FieldError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The member, as a path: `categories[2].actions[0].title`; empty for the whole.
  public let field: String
  /// The rule as a sentence that says what to do.
  public let rule: String

  /// An error of one member.
  public init(field: String, rule: String) {
    (self.field, self.rule) = (field, rule)
  }

  /// Always false: the same bytes give the same answer.
  public var isRetriable: Bool { false }

  /// Member and rule.
  public var description: String { field.isEmpty ? rule : "\(field): \(rule)" }
}
