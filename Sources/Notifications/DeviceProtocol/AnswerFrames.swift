/// The frame `refused`: a response or a request was refused. The device does not repeat it.
public struct RefusedFrame: Sendable, Equatable {
  /// What was refused.
  public var subject: FrameSubject
  /// The reason, a word of ``RefusalReason``.
  public var reason: String
  /// The path of the wrong member; empty for the whole frame.
  public var field: String
  /// The rule as a sentence; empty if the reason is enough.
  public var rule: String

  /// Creates a refusal.
  public init(_ subject: FrameSubject, _ reason: RefusalReason, field: String, rule: String = "") {
    (self.subject, self.reason, self.field, self.rule) = (subject, reason.rawValue, field, rule)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    subject = try FrameSubject(reader)
    reason = try reader.requiredText("reason", longest: FrameLimits.idBytes)
    field = try reader.text("field", longest: 1_024, isFree: true) ?? ""
    rule = try reader.text("rule", longest: 1_024, isFree: true) ?? ""
  }
}

extension FrameSubject {
  init(_ reader: ObjectReader) throws(FieldError) {
    if let response = try reader.text("response", longest: FrameLimits.idBytes) {
      self = .response(response)
    } else {
      self = .request(try reader.requiredText("request", longest: FrameLimits.idBytes))
    }
  }
}

/// The frame `gap`: what can no longer be delivered.
public struct GapFrame: Sendable, Equatable {
  /// The first revision that is missing.
  public var from: String
  /// The last revision that is missing.
  public var to: String

  /// Creates a gap.
  public init(from: String, to: String) { (self.from, self.to) = (from, to) }

  init(_ reader: ObjectReader) throws(FieldError) {
    from = try reader.text("from", longest: FrameLimits.idBytes, isFree: true) ?? ""
    to = try reader.text("to", longest: FrameLimits.idBytes, isFree: true) ?? ""
  }
}
