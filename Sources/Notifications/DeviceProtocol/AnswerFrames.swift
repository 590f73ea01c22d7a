/// The frame `accepted`: a response or a request was taken, durably.
public struct AcceptedFrame: Sendable, Equatable {
  /// What was taken.
  public var subject: FrameSubject

  /// An answer.
  public init(_ subject: FrameSubject) { self.subject = subject }

  init(_ reader: ObjectReader) throws(FieldError) { subject = try FrameSubject(reader) }
}

/// The frame `refused`: a response or a request was not taken, and is not to be sent again.
public struct RefusedFrame: Sendable, Equatable {
  /// What was refused.
  public var subject: FrameSubject
  /// Why: a word of ``RefusalReason``.
  public var reason: String
  /// The member that is wrong, as a path; empty for the whole frame.
  public var field: String
  /// The rule as a sentence; empty when the reason says all.
  public var rule: String

  /// A refusal.
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

/// The frame `gap`: what cannot be delivered any more.
public struct GapFrame: Sendable, Equatable {
  /// The channel; `nil` for the device's mailbox.
  public var channel: Name?
  /// The first that is missing: a revision for the mailbox, a cursor for a channel.
  public var from: String
  /// The last that is missing.
  public var to: String

  /// A gap.
  public init(channel: Name? = nil, from: String, to: String) {
    (self.channel, self.from, self.to) = (channel, from, to)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    channel = try reader.name("channel", longest: RequestLimits.userBytes)
    from = try reader.text("from", longest: FrameLimits.idBytes, isFree: true) ?? ""
    to = try reader.text("to", longest: FrameLimits.idBytes, isFree: true) ?? ""
  }
}
