public import JSON

/// Writes the frames of the cluster. Each goes into a writer that was reset.
public enum ServerFrames {
  // MARK: Deliveries

  /// Appends `remove` for an entry. It allocates nothing.
  ///
  /// A removal of all names no identifier. Devices know apns-ids in lower case. So an identifier that is a UUID in upper case goes out in
  /// both forms: as a collapse id and as an apns-id.
  public static func remove(_ entry: DeliveryEntryView, revision: Revision, delivery: UInt64, to json: inout JSONWriter) {
    json.openFrame("remove")
    json.member("delivery", delivery)
    json.key("identifiers")
    json.openArray()
    if !entry.removesAll {
      entry.withIdentifier { identifier in
        json.string(utf8: identifier)
        NotificationID.withCanonical(identifier) { if !$0.elementsEqual(identifier) { json.string(utf8: $0) } }
      }
    }
    json.closeArray()
    if entry.removesAll { json.member("all", true) }
    if entry.removesPending { json.member("scope", "pending") }
    revision.withText { json.member("revision", utf8: $0) }
    json.closeObject()
  }

  // MARK: The session

  /// Appends `welcome`.
  ///
  /// - Parameters:
  ///   - session: the session's generation, which the frame has in hexadecimal.
  ///   - now: the cluster's clock, in milliseconds since 1970.
  ///   - quiet: the person's quiet hours; nil if there are none.
  ///   - frameBytes: the largest frame that a device may send.
  ///   - userTextBytes: the longest text of a response.
  public static func welcome(
    session: UInt64, now: Int64, pingSeconds: Int, window: Int, rememberSeconds: Int64, quiet: QuietHours? = nil, frameBytes: Int,
    userTextBytes: Int = Registration.userTextBytes, to json: inout JSONWriter
  ) {
    json.openFrame("welcome")
    json.member("session", String(session, radix: 16))
    json.member("now", now)
    json.member("pingSeconds", pingSeconds)
    json.member("window", window)
    json.member("rememberSeconds", rememberSeconds)
    json.member("quiet", quiet)
    json.key("limits")
    json.openObject()
    json.member("frameBytes", frameBytes)
    json.member("userTextBytes", userTextBytes)
    json.member("categories", NotificationCategory.maximum)
    json.member("actions", NotificationCategory.maximumActions)
    json.closeObject()
    json.closeObject()
  }

  /// Appends `heartbeat`, a sign of life.
  public static func heartbeat(to json: inout JSONWriter) {
    json.openFrame("heartbeat")
    json.closeObject()
  }

  /// Appends `goaway`.
  ///
  /// - Parameters:
  ///   - reconnectAfterMilliseconds: a longer time is reduced to ``Reconnection/longestTold``.
  ///   - reason: a name of the close codes' table.
  public static func goaway(reconnectAfterMilliseconds: Int, reason: String, to json: inout JSONWriter) {
    json.openFrame("goaway")
    json.member("reconnectAfterMs", min(max(reconnectAfterMilliseconds, 0), Reconnection.longestTold))
    json.member("reason", reason)
    json.closeObject()
  }

  /// Appends `gap` for the mailbox. The entries between two revisions were evicted.
  public static func mailboxGap(from: Revision, to last: Revision, to json: inout JSONWriter) {
    json.openFrame("gap")
    json.member("mailbox", true)
    from.withText { json.member("from", utf8: $0) }
    last.withText { json.member("to", utf8: $0) }
    json.closeObject()
  }

  // MARK: Answers

  /// Appends `accepted` for a response or a request.
  public static func accepted(_ subject: FrameSubject, to json: inout JSONWriter) {
    json.openFrame("accepted")
    json.member(subject.member.name, subject.member.id)
    json.closeObject()
  }

  /// Appends `refused` for a response or a request.
  ///
  /// - Parameters:
  ///   - field: the path of the wrong member; empty for the whole frame.
  ///   - rule: the rule as a sentence; empty if the reason is enough.
  public static func refused(
    _ subject: FrameSubject, reason: RefusalReason, field: String, rule: String = "", to json: inout JSONWriter
  ) {
    json.openFrame("refused")
    json.member(subject.member.name, subject.member.id)
    json.member("reason", reason.rawValue)
    json.member("field", field)
    if !rule.isEmpty { json.member("rule", rule) }
    json.closeObject()
  }

  /// Appends `linked`: the answer to `link`.
  public static func linked(request: String, _ link: MediaLink, to json: inout JSONWriter) {
    json.openFrame("linked")
    json.member("request", request)
    json.member("url", link.url)
    json.member("expires", link.expires)
    json.closeObject()
  }
}

extension FrameSubject {
  /// The member that names it in frames.
  public var member: (name: StaticString, id: String) {
    switch self {
    case .response(let id): ("response", id)
    case .request(let id): ("request", id)
    }
  }
}

extension JSONWriter {
  /// Begins a frame of a type.
  mutating func openFrame(_ type: StaticString) {
    openObject()
    member("type", word: type)
  }
}
