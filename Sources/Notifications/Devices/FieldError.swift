/// A member of a registration, a frame or a file breaks its rule.
///
/// Its texts are the program's own and name only members. So they may be logged, and sent to the device.
public struct FieldError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The path of the member, such as `categories[2].actions[0].title`; empty for the whole.
  public let field: String
  /// The rule, as a sentence that says what to do.
  public let rule: String

  /// Creates the error of a member.
  public init(field: String, rule: String) {
    (self.field, self.rule) = (field, rule)
  }

  /// The member and the rule.
  public var description: String { field.isEmpty ? rule : "\(field): \(rule)" }
}
