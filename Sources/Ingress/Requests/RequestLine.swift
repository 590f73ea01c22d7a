import JSON
import Notifications
import Worker

/// Why a line is not a request.
package struct LineError: Error, CustomStringConvertible {
  /// The member; `body` for the line as a whole.
  let field: String
  /// The fault, and what to write instead.
  package let description: String

  /// Makes an error of a member.
  package init(_ field: String, _ description: String) { (self.field, self.description) = (field, description) }

  /// Makes an error of the whole line.
  package init(_ description: String) { self.init("body", description) }
}

/// One line of a file of requests. A JSON object whose members have the names of the flags.
package enum RequestLine {
  /// Its description in `--help`.
  package static let help = """
    Each line of --lines is a JSON object whose members have the names of the flags: target, app, id, collapse-id, expiration, priority, \
    push-type, trigger, operation, identifiers, all, title, subtitle, body, badge, sound, category, thread-id, \
    interruption-level, relevance-score, mutable-content, content-available; further custom (an object: members of the payload beside aps), payload (an object: the whole payload, as it stands \
    there) and headers (an object of strings: record headers by their own names, such as apns-topic). What a line leaves out is taken from \
    the flags. A line that is wrong is named on standard error, the others are published, and the exit code is 1.
    """

  /// Reads one line.
  ///
  /// - Parameter now: the present time in milliseconds since 1970, for an expiration that is a duration.
  package static func read(_ line: UnsafeRawBufferPointer, now: Int64) throws(LineError) -> RequestDraft {
    do {
      return try draft(line, now)
    } catch let error as LineError {
      throw error
    } catch {
      throw LineError("\(error)")
    }
  }

  private static func draft(_ line: UnsafeRawBufferPointer, _ now: Int64) throws -> RequestDraft {
    var scanner = JSONScanner(line)
    var draft = RequestDraft()
    var seen: Set<Name> = []
    try scanner.openObject()
    while let (key, value) = try scanner.nextMember() {
      let name = scanner.text(key) ?? ""
      guard seen.insert(Name(name)).inserted else {
        throw LineError(PrintedText.echo(name), "the member '\(PrintedText.echo(name))' stands twice")
      }
      guard let flag = Member(rawValue: name) else { throw unknown(name) }
      if value.kind == .null { continue }
      try take(flag, value, scanner, now, into: &draft)
    }
    try scanner.finish()
    if draft.payload != nil, !draft.content.isEmpty {
      throw LineError("payload", "'payload' is the whole payload: no title, body, custom and so on beside it")
    }
    return draft
  }

  private static func unknown(_ name: String) -> LineError {
    let meant = Suggestion.nearest(to: name, in: Member.allCases.map(\.rawValue))
    return LineError(PrintedText.echo(name), "no member '\(PrintedText.echo(name))' is known" + Suggestion.question(meant))
  }

  private enum Member: String, CaseIterable {
    case target, app, id, collapseID = "collapse-id", expiration, priority, pushType = "push-type", trigger, operation, identifiers
    case removesAll = "all", title, subtitle, body, badge, sound, category, threadID = "thread-id"
    case interruptionLevel = "interruption-level", relevanceScore = "relevance-score", isMutable = "mutable-content"
    case isContentAvailable = "content-available", custom, payload, headers
  }

  private static func take(
    _ member: Member, _ value: JSONSpan, _ scanner: JSONScanner, _ now: Int64, into draft: inout RequestDraft
  ) throws {
    func set(_ header: RequestHeader, _ text: String) throws(LineError) { try add(Name(header), text, member, to: &draft) }
    switch member {
    case .target: try set(.target, try text(value, scanner, member))
    case .app: try set(.topic, try text(value, scanner, member))
    case .id: try set(.id, try text(value, scanner, member))
    case .collapseID: try set(.collapseID, try text(value, scanner, member))
    case .expiration: try set(.expiration, try expiration(value, scanner, now))
    case .priority: try set(.priority, try numberOrText(value, scanner, member))
    case .pushType: try set(.pushType, try text(value, scanner, member))
    case .trigger: try set(.trigger, try source(value, scanner, member, .object))
    case .operation: try set(.operation, try text(value, scanner, member))
    case .identifiers: draft.identifiers = try texts(value, scanner, member).map { Name($0) }
    case .removesAll: draft.removesAll = try flag(value, scanner, member)
    case .title: draft.content.title = try text(value, scanner, member)
    case .subtitle: draft.content.subtitle = try text(value, scanner, member)
    case .body: draft.content.body = try text(value, scanner, member)
    case .badge:
      guard let badge = scanner.integer(value) else { throw wrong(member, "a whole number") }
      draft.content.badge = badge
    case .sound: draft.content.sound = try text(value, scanner, member)
    case .category: draft.content.category = Name(try text(value, scanner, member))
    case .threadID: draft.content.threadID = Name(try text(value, scanner, member))
    case .interruptionLevel:
      guard let level = InterruptionLevel(rawValue: try text(value, scanner, member)) else {
        throw wrong(member, "one of \(InterruptionLevel.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      draft.content.interruptionLevel = level
    case .relevanceScore:
      guard let score = scanner.double(value), (0...1).contains(score) else { throw wrong(member, "a number from 0 to 1") }
      draft.content.relevanceScore = score
    case .isMutable: draft.content.isMutable = try flag(value, scanner, member)
    case .isContentAvailable: draft.content.isContentAvailable = try flag(value, scanner, member)
    case .custom:
      var seen: Set<Name> = []
      try forEachMember(value, scanner, member) { name, value in
        guard seen.insert(Name(name)).inserted else {
          throw LineError("custom", "the member '\(PrintedText.echo(name))' of 'custom' stands twice")
        }
        guard name != "aps" else { throw LineError("custom", "'custom' is what stands beside aps; use 'payload' for aps itself") }
        draft.content.custom.append(CustomMember(key: name, value: Array(scanner.source(value))))
      }
    case .payload:
      guard value.kind == .object else { throw wrong(member, "an object") }
      draft.payload = Array(scanner.source(value))
    case .headers:
      try forEachMember(value, scanner, member) { name, value in
        let text = try numberOrText(value, scanner, member)
        guard isHeaderName(name) else {
          throw LineError("headers", "a name in 'headers' must have 1 to \(longestHeaderName) visible ASCII characters")
        }
        try add(Name(header: name), text, member, to: &draft)
      }
    }
  }

  /// Adds a header, which a member and `headers` may both have meant.
  private static func add(_ name: Name, _ text: String, _ member: Member, to draft: inout RequestDraft) throws(LineError) {
    let isTarget = name == Name(RequestHeader.target)
    guard isTarget ? draft.target == nil : draft.headers[name] == nil else {
      throw LineError(member.rawValue, "the header '\(PrintedText.echo(name.text))' stands twice")
    }
    if isTarget { draft.target = Name(text) } else { draft.headers[name] = text }
  }

  /// The longest name of a further header, in bytes.
  private static let longestHeaderName = 256

  /// Whether a record may have a header of this name. In Kafka's client a zero ends a name.
  private static func isHeaderName(_ name: String) -> Bool {
    (1...longestHeaderName).contains(name.utf8.count) && name.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  // MARK: Values

  private static func wrong(_ member: Member, _ allowed: String) -> LineError {
    LineError(member.rawValue, "'\(member.rawValue)' must be \(allowed)")
  }

  private static func text(_ value: JSONSpan, _ scanner: JSONScanner, _ member: Member) throws(LineError) -> String {
    guard let text = scanner.text(value) else { throw wrong(member, "a string") }
    return text
  }

  private static func numberOrText(_ value: JSONSpan, _ scanner: JSONScanner, _ member: Member) throws(LineError) -> String {
    if value.kind == .number { return String(decoding: scanner.source(value), as: UTF8.self) }
    guard let text = scanner.text(value) else { throw wrong(member, member == .headers ? "an object of strings" : "a string or a number") }
    return text
  }

  private static func source(_ value: JSONSpan, _ scanner: JSONScanner, _ member: Member, _ kind: JSONKind) throws(LineError) -> String {
    guard value.kind == kind else { throw wrong(member, "an object") }
    return String(decoding: scanner.source(value), as: UTF8.self)
  }

  /// A number 1 or 0, as in APNs, or a boolean.
  private static func flag(_ value: JSONSpan, _ scanner: JSONScanner, _ member: Member) throws(LineError) -> Bool {
    switch (scanner.bool(value), scanner.integer(value)) {
    case (let flag?, _): return flag
    case (_, 1): return true
    case (_, 0): return false
    default: throw wrong(member, "true or false")
    }
  }

  /// Seconds since 1970, or a duration from now such as `10m`.
  private static func expiration(_ value: JSONSpan, _ scanner: JSONScanner, _ now: Int64) throws(LineError) -> String {
    let written = try numberOrText(value, scanner, .expiration)
    guard value.kind == .string, let duration = Duration(written: written), written != "0" else { return written }
    return String((now + Timestamp.bounded(Int64(duration.wholeMilliseconds))) / 1000)
  }

  private static func texts(_ value: JSONSpan, _ scanner: JSONScanner, _ member: Member) throws -> [String] {
    guard value.kind == .array else { throw wrong(member, "an array of strings") }
    var texts: [String] = []
    var elements = scanner.scanner(of: value)
    try elements.openArray()
    while try elements.nextElement() {
      guard let text = elements.text(try elements.skip()) else { throw wrong(member, "an array of strings") }
      texts.append(text)
    }
    return texts
  }

  private static func forEachMember(
    _ value: JSONSpan, _ scanner: JSONScanner, _ member: Member, _ body: (String, JSONSpan) throws -> Void
  ) throws {
    guard value.kind == .object else { throw wrong(member, member == .headers ? "an object of strings" : "an object") }
    var members = scanner.scanner(of: value)
    try members.openObject()
    while let (key, value) = try members.nextMember() { try body(members.text(key) ?? "", value) }
  }
}
