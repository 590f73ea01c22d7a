/// The response or request of a frame, which an answer names.
public enum FrameSubject: Sendable, Hashable {
  /// A response, with the device's own id.
  case response(String)
  /// A request that wants an answer, with the device's own id.
  case request(String)
}

/// A frame breaks the protocol.
public struct DeviceFrameError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The frame's type; empty if it is unknown.
  public let frame: String
  /// The path of the member; empty for the whole frame.
  public let field: String
  /// The rule, as a sentence that says what to do.
  public let rule: String
  /// What a refusal names; nil if the frame has no valid id.
  public let subject: FrameSubject?

  /// Creates the error of a frame.
  public init(frame: String, field: String, rule: String, subject: FrameSubject? = nil) {
    (self.frame, self.field, self.rule, self.subject) = (frame, field, rule, subject)
  }

  init(_ error: FieldError, frame: String, subject: FrameSubject? = nil) {
    self.init(frame: frame, field: error.field, rule: error.rule, subject: subject)
  }

  /// The close code, unless a refusal answers the error.
  public var closeCode: CloseCode { frame == DeviceFrameType.hello.rawValue ? .badHello : .protocolError }

  /// The frame, the member and the rule.
  public var description: String { [frame, field, rule].filter { !$0.isEmpty }.joined(separator: ": ") }
}
