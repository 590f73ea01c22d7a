internal import JSON

/// The body of a `remove` or a `cancel`: `{"identifiers": ["…"]}`, or `{"all": true}`.
///
/// With `"scope": "pending"` a `remove` is a `cancel`. With a bound it only removes location requests from the devices.
struct RemoveBody {
  /// The number of identifiers.
  let count: Int
  /// The array of identifiers in the body; empty if there is none.
  let source: UnsafeRawBufferPointer
  /// Whether it applies to all.
  let removesAll: Bool
  /// The newest revision that it removes; nil if that is its own.
  let bound: Revision?
  /// Whether it is about what is pending, and no delivered notifications.
  let isOfPending: Bool

  static let rule: String =
    "A remove or a cancel names one identifier of 1 to 64 bytes, in apns-collapse-id or as {\"identifiers\": [\"…\"]}, and publish one for each; or it has {\"all\": true}."

  /// Checks a body that is not empty.
  init(checking body: UnsafeRawBufferPointer) throws(Rejection) {
    do {
      (count, source, removesAll, bound, isOfPending) = try Self.read(body)
    } catch let rejection as Rejection {
      throw rejection
    } catch {
      throw Rejection(
        .badRequestPayload, field: "payload", error, rule: Self.rule,
        tooDeep: "In the body of a remove at most 64 objects and arrays lie inside one another.")
    }
  }

  private static func read(_ body: UnsafeRawBufferPointer) throws -> (Int, UnsafeRawBufferPointer, Bool, Revision?, Bool) {
    var scanner = JSONScanner(body)
    var found: JSONSpan?
    var all: Bool?
    var bound: Revision?
    var isOfPending: Bool?
    try scanner.openObject()
    while let (key, value) = try scanner.nextMember() {
      if scanner.matches(key, "all") {
        guard all == nil, let flag = scanner.bool(value) else {
          throw Rejection(.badRequestPayload, field: "all", rule: "The member all stands once, and is true or false.", offset: value.start)
        }
        all = flag
      } else if scanner.matches(key, "notNewerThan") {
        guard bound == nil, let revision = scanner.unescapedBytes(value).flatMap(Revision.init(text:)) else {
          throw Rejection(
            .badRequestPayload, field: "notNewerThan", rule: "The member notNewerThan stands once, and is a revision as events have it.",
            offset: value.start)
        }
        bound = revision
      } else if scanner.matches(key, "scope") {
        guard isOfPending == nil, scanner.matches(value, "pending") || scanner.matches(value, "delivered") else {
          throw Rejection(
            .badRequestPayload, field: "scope", rule: "The member scope stands once, and is delivered or pending.", offset: value.start)
        }
        isOfPending = scanner.matches(value, "pending")
      }
      guard scanner.matches(key, "identifiers") else { continue }
      guard found == nil, value.kind == .array else { throw wrong(value.start) }
      found = value
    }
    try scanner.finish()
    guard bound == nil || all != true else {
      throw Rejection(.badRequestPayload, field: "notNewerThan", rule: "A removal of all takes what is older than itself.")
    }
    guard isOfPending != true || all != true else {
      throw Rejection(.badRequestPayload, field: "scope", rule: "A removal of all takes what was delivered.")
    }
    guard let found else { return (0, .empty, all ?? false, bound, isOfPending ?? false) }
    var count = 0
    var elements = scanner.scanner(of: found)
    try elements.openArray()
    while try elements.nextElement() {
      let value = try elements.skip()
      count += 1
      guard count <= RequestLimits.removeIdentifiers, let bytes = elements.unescapedBytes(value)?.count ?? elements.text(value)?.utf8.count,
        bytes > 0, bytes <= RequestLimits.identifierBytes
      else { throw wrong(value.start) }
    }
    guard count > 0 else { throw wrong(found.start) }
    return (count, scanner.source(found), all ?? false, bound, isOfPending ?? false)
  }

  private static func wrong(_ offset: Int) -> Rejection {
    Rejection(.badRequestPayload, field: "identifiers", rule: rule, offset: offset)
  }

  /// Calls `body` with each identifier of a checked array, without escapes.
  ///
  /// The bytes are valid during the call.
  static func forEach(in source: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
    guard !source.isEmpty else { return }
    var scanner = JSONScanner(source)
    guard (try? scanner.openArray()) != nil else { return }
    while (try? scanner.nextElement()) == true, let value = try? scanner.skip() {
      if let bytes = scanner.unescapedBytes(value) {
        try body(bytes)
      } else if var text = scanner.text(value) {
        try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
      }
    }
  }
}
