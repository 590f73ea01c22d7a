import JSON
import Notifications
import Worker

/// Why a line is not a request.
struct LineError: Error, CustomStringConvertible {
  let description: String
}

/// One line of a file of requests. A JSON object whose members have the names of the flags.
enum RequestLine {
  /// Its description in `--help`.
  static let help = """
    Each line of --lines is a JSON object whose members have the names of the flags: target, app, id, collapse-id, expiration, priority, \
    push-type, trigger, operation, identifiers, all, title, subtitle, body, badge, sound, category, thread-id, mutable-content, \
    content-available; further custom (an object: members of the payload beside aps), payload (an object: the whole payload, as it stands \
    there) and headers (an object of strings: record headers by their own names, such as apns-topic). What a line leaves out is taken from \
    the flags. A line that is wrong is named on standard error, the others are published, and the exit code is 1.
    """

  /// Reads one line.
  static func read(_ line: UnsafeRawBufferPointer, now: Int64) throws(LineError) -> RequestDraft {
    do {
      return try draft(line, now)
    } catch let error as LineError {
      throw error
    } catch {
      throw LineError(description: "\(error)")
    }
  }

  private static func draft(_ line: UnsafeRawBufferPointer, _ now: Int64) throws -> RequestDraft {
    var scanner = JSONScanner(line)
    var draft = RequestDraft()
    var seen: Set<Name> = []
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      let name = scanner.text(key) ?? ""
      let value = try scanner.skip()
      guard seen.insert(Name(name)).inserted else { throw LineError(description: "the member '\(PrintedText.echo(name))' stands twice") }
      guard let flag = Member(rawValue: name) else { throw unknown(name) }
      if value.kind == .null { continue }
      try take(flag, value, scanner, now, into: &draft)
    }
    try scanner.finish()
    if draft.payload != nil, !draft.content.isEmpty {
      throw LineError(description: "'payload' is the whole payload: no title, body, custom and so on beside it")
    }
    return draft
  }

  private static func unknown(_ name: String) -> LineError {
    let meant = Suggestion.nearest(to: name, in: Member.allCases.map(\.rawValue))
    return LineError(description: "no member '\(PrintedText.echo(name))' is known" + Suggestion.question(meant))
  }

  private enum Member: String, CaseIterable {
    case target, app, id, collapseID = "collapse-id", expiration, priority, pushType = "push-type", trigger, operation, identifiers
    case removesAll = "all", title, subtitle, body, badge, sound, category, threadID = "thread-id", isMutable = "mutable-content"
    case isContentAvailable = "content-available", custom, payload, headers
  }

  private static func take(
    _ member: Member, _ value: JSONSpan, _ scanner: JSONScanner, _ now: Int64, into draft: inout RequestDraft
  ) throws {
    func set(_ header: RequestHeader, _ text: String) { draft.headers[header] = text }
    switch member {
    case .target: draft.target = Name(try text(value, scanner, member))
    case .app: set(.topic, try text(value, scanner, member))
    case .id: set(.id, try text(value, scanner, member))
    case .collapseID: set(.collapseID, try text(value, scanner, member))
    case .expiration: set(.expiration, try expiration(value, scanner, now))
    case .priority: set(.priority, try numberOrText(value, scanner, member))
    case .pushType: set(.pushType, try text(value, scanner, member))
    case .trigger: set(.trigger, try source(value, scanner, member, .object))
    case .operation: set(.operation, try text(value, scanner, member))
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
    case .isMutable: draft.content.isMutable = try flag(value, scanner, member)
    case .isContentAvailable: draft.content.isContentAvailable = try flag(value, scanner, member)
    case .custom:
      try forEachMember(value, scanner, member) { name, value in
        guard name != "aps" else { throw LineError(description: "'custom' is what stands beside aps; use 'payload' for aps itself") }
        draft.content.custom.append(CustomMember(key: name, value: Array(scanner.source(value))))
      }
    case .payload:
      guard value.kind == .object else { throw wrong(member, "an object") }
      draft.payload = Array(scanner.source(value))
    case .headers:
      try forEachMember(value, scanner, member) { name, value in
        let text = try numberOrText(value, scanner, member)
        let name = Name(header: name)
        if name == Name(RequestHeader.target) { draft.target = Name(text) } else { draft.headers[name] = text }
      }
    }
  }

  // MARK: Values

  private static func wrong(_ member: Member, _ allowed: String) -> LineError {
    LineError(description: "'\(member.rawValue)' must be \(allowed)")
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
    return String(Moment.away(duration).secondsAfter(now: now))
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
    while let key = try members.nextKey() { try body(members.text(key) ?? "", try members.skip()) }
  }
}
