public import JSON

/// Writes the frames that the cluster sends, each whole into a writer that was reset.
public enum ServerFrames {
  // MARK: Deliveries

  /// Appends `notify` for an entry; payload and trigger are taken over byte for byte, and without attachments nothing is allocated.
  ///
  /// - Parameters:
  ///   - entry: the entry of a notification, whose JSON was checked when its request was.
  ///   - delivery: the number in this session, at most ``FrameLimits/largestDelivery``.
  ///   - presentation: how the device may present it.
  ///   - level: what its interruption level counts as, where that is not the payload's.
  ///   - category: the notification's category as JSON, where it was published and the device has none of its own; none else.
  ///   - receipt: the signed receipt as text.
  ///   - link: where the device finds a file; nil where the cluster serves no media.
  public static func notify(
    _ entry: DeliveryEntryView, revision: Revision, delivery: UInt64, presentation: PresentationOptions,
    countingAs level: InterruptionLevel? = nil, category: [UInt8]? = nil, receipt: UnsafeRawBufferPointer, to json: inout JSONWriter,
    link: (MediaHash) -> MediaLink? = { _ in nil }
  ) {
    begin("notify", &json)
    json.key("delivery")
    json.integer(delivery)
    json.key("id")
    entry.id.withText { json.string(utf8: $0) }
    json.key("identifier")
    entry.withIdentifier { json.string(utf8: $0) }
    json.key("revision")
    revision.withText { json.string(utf8: $0) }
    json.member("expiration", entry.expiration)
    json.member("priority", Int(entry.priority))
    json.member("pushType", word: entry.pushType.name)
    json.key("presentation")
    presentation.write(to: &json)
    if let level { json.member("interruptionLevel", word: level.word) }
    if let category { category.withUnsafeBytes { json.member("category", raw: $0) } }
    if !entry.trigger.isEmpty { json.member("trigger", raw: entry.trigger) }
    if !entry.traceparent.isEmpty {
      json.key("traceparent")
      json.string(utf8: entry.traceparent)
    }
    if !entry.attachments.isEmpty, let attachments = NotificationAttachment.list(entry.attachments) {
      json.key("attachments")
      JSONValue.array(attachments.map { LinkedAttachment($0, link: link($0.media.hash)).object }).write(to: &json)
    }
    json.key("payload")
    if entry.payload.isEmpty {
      json.openObject()
      json.closeObject()
    } else {
      json.raw(entry.payload)
    }
    json.key("receipt")
    json.string(utf8: receipt)
    json.closeObject()
  }

  /// Appends `remove` for an entry; nothing is allocated.
  ///
  /// A removal of all names no identifier. An identifier that is a UUID in upper case is a collapse id as it stands, or an apns-id, which devices know in lower case.
  public static func remove(_ entry: DeliveryEntryView, revision: Revision, delivery: UInt64, to json: inout JSONWriter) {
    begin("remove", &json)
    json.key("delivery")
    json.integer(delivery)
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
    json.key("revision")
    revision.withText { json.string(utf8: $0) }
    json.closeObject()
  }

  // MARK: The session

  /// Appends `welcome`.
  ///
  /// - Parameters:
  ///   - session: the session's generation; the frame says it in hexadecimal.
  ///   - now: the cluster's clock, in milliseconds since 1970.
  ///   - quiet: the person's quiet hours, if there are any.
  ///   - frameBytes: the largest frame that a device may send.
  ///   - userTextBytes: the longest text of a response.
  public static func welcome(
    session: UInt64, now: Int64, pingSeconds: Int, window: Int, rememberSeconds: Int64, quiet: QuietHours? = nil, frameBytes: Int,
    userTextBytes: Int = Registration.userTextBytes, to json: inout JSONWriter
  ) {
    begin("welcome", &json)
    json.member("session", String(session, radix: 16))
    json.member("now", now)
    json.member("pingSeconds", pingSeconds)
    json.member("window", window)
    json.member("rememberSeconds", rememberSeconds)
    if let quiet {
      json.key("quiet")
      quiet.write(to: &json)
    }
    json.key("limits")
    json.openObject()
    json.member("frameBytes", frameBytes)
    json.member("userTextBytes", userTextBytes)
    json.member("categories", NotificationCategory.maximum)
    json.member("actions", NotificationCategory.maximumActions)
    json.closeObject()
    json.closeObject()
  }

  /// Appends `heartbeat`: the connection stands.
  public static func heartbeat(to json: inout JSONWriter) {
    begin("heartbeat", &json)
    json.closeObject()
  }

  /// Appends `goaway`.
  ///
  /// - Parameters:
  ///   - reconnectAfterMilliseconds: a longer time than ``Reconnection/longestTold`` is shortened to it.
  ///   - reason: a name of the close codes' table.
  public static func goaway(reconnectAfterMilliseconds: Int, reason: String, to json: inout JSONWriter) {
    begin("goaway", &json)
    json.member("reconnectAfterMs", min(max(reconnectAfterMilliseconds, 0), Reconnection.longestTold))
    json.member("reason", reason)
    json.closeObject()
  }

  /// Appends `gap` for the device's mailbox: what lay there between two revisions was evicted.
  public static func mailboxGap(from: Revision, to last: Revision, to json: inout JSONWriter) {
    begin("gap", &json)
    json.member("mailbox", true)
    json.key("from")
    from.withText { json.string(utf8: $0) }
    json.key("to")
    last.withText { json.string(utf8: $0) }
    json.closeObject()
  }

  // MARK: Answers

  /// Appends `accepted` for a response.
  public static func accepted(response: String, to json: inout JSONWriter) { accepted(.response(response), to: &json) }

  /// Appends `accepted` for a request.
  public static func accepted(request: String, to json: inout JSONWriter) { accepted(.request(request), to: &json) }

  /// Appends `accepted`.
  public static func accepted(_ subject: FrameSubject, to json: inout JSONWriter) {
    begin("accepted", &json)
    write(subject, &json)
    json.closeObject()
  }

  /// Appends `refused` for a response.
  public static func refused(response: String, reason: RefusalReason, field: String, to json: inout JSONWriter) {
    refused(.response(response), reason: reason, field: field, to: &json)
  }

  /// Appends `refused` for a request.
  public static func refused(request: String, reason: RefusalReason, field: String, to json: inout JSONWriter) {
    refused(.request(request), reason: reason, field: field, to: &json)
  }

  /// Appends `refused`.
  ///
  /// - Parameters:
  ///   - field: the member that is wrong, as a path; empty for the whole frame.
  ///   - rule: the rule as a sentence; empty when the reason says all.
  public static func refused(
    _ subject: FrameSubject, reason: RefusalReason, field: String, rule: String = "", to json: inout JSONWriter
  ) {
    begin("refused", &json)
    write(subject, &json)
    json.member("reason", reason.rawValue)
    json.member("field", field)
    if !rule.isEmpty { json.member("rule", rule) }
    json.closeObject()
  }

  /// Appends `linked`: the answer to `link`.
  public static func linked(request: String, _ link: MediaLink, to json: inout JSONWriter) {
    begin("linked", &json)
    json.member("request", request)
    json.member("url", link.url)
    json.member("expires", link.expires)
    json.closeObject()
  }

  /// Appends the refusal of a frame that was wrong, and says whether there is one: the frame must have said what it is about.
  public static func refused(_ error: DeviceFrameError, to json: inout JSONWriter) -> Bool {
    guard let subject = error.subject else { return false }
    refused(subject, reason: .badFrame, field: error.field, rule: error.rule, to: &json)
    return true
  }

  private static func begin(_ type: StaticString, _ json: inout JSONWriter) {
    json.openObject()
    json.member("type", word: type)
  }

  private static func write(_ subject: FrameSubject, _ json: inout JSONWriter) {
    switch subject {
    case .response(let id): json.member("response", id)
    case .request(let id): json.member("request", id)
    }
  }
}
