/// What a frame is about, so that an answer can name it.
public enum FrameSubject: Sendable, Hashable {
  /// A response, by the device's own id for it.
  case response(String)
  /// A request for an answer, by the device's own id for it.
  case request(String)
}

/// A frame does not keep the protocol.
public struct DeviceFrameError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The frame's type; empty when it could not be made out.
  public let frame: String
  /// The member, as a path; empty for the whole frame.
  public let field: String
  /// The rule as a sentence that says what to do.
  public let rule: String
  /// What a refusal is to name, as far as the frame has said it.
  public let subject: FrameSubject?

  /// An error of a frame.
  public init(frame: String, field: String, rule: String, subject: FrameSubject? = nil) {
    (self.frame, self.field, self.rule, self.subject) = (frame, field, rule, subject)
  }

  init(_ error: FieldError, frame: String, subject: FrameSubject? = nil) {
    self.init(frame: frame, field: error.field, rule: error.rule, subject: subject)
  }

  /// What the connection is closed with, unless the error is answered by a refusal.
  public var closeCode: CloseCode { frame == DeviceFrameType.hello.rawValue ? .badHello : .protocolError }

  /// Always false: the same frame is as wrong the next time.
  public var isRetriable: Bool { false }

  /// Frame, member, rule.
  public var description: String { [frame, field, rule].filter { !$0.isEmpty }.joined(separator: ": ") }
}
