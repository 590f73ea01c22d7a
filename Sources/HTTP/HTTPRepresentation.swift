/// The representation of a resource: the number of its bytes, and a tag that no other bytes have.
///
/// It evaluates a request's conditions and its range (RFC 9110, sections 13 and 14), without I/O. It has no date, so conditions on dates
/// are ignored, as section 13.1 requires.
public struct HTTPRepresentation: Hashable, Sendable {
  /// The strong entity tag, without the quotes, such as a digest.
  public let entityTag: String
  /// The number of bytes.
  public let count: Int

  /// Describes a representation.
  ///
  /// - Parameters:
  ///   - entityTag: visible ASCII characters without quotes.
  ///   - count: not negative.
  public init(entityTag: String, count: Int) {
    precondition(EntityTag.isOpaque(entityTag), "an entity tag has visible ASCII characters and no quotes")
    precondition(count >= 0, "a representation cannot have fewer than no bytes")
    self.entityTag = entityTag
    self.count = count
  }

  /// The answer to a request.
  ///
  /// A range applies to GET only, and must be a single one of bytes. For several, a malformed field, or another unit the answer is
  /// everything.
  public func selection(for request: HTTPRequest) -> HTTPSelection {
    // The order of RFC 9110, section 13.2.2.
    let headers = request.headers
    let isRead = request.method == .get || request.method == .head
    if headers["If-Match"] != nil, !matches(headers, "If-Match", isStrong: true) { return HTTPSelection(self, .preconditionFailed) }
    if matches(headers, "If-None-Match", isStrong: false) { return HTTPSelection(self, isRead ? .notModified : .preconditionFailed) }
    let ranges = headers.values(of: "Range")
    guard request.method == .get, ranges.count == 1, let range = ranges.first, isRangeWanted(headers) else {
      return HTTPSelection(self, .ok, 0..<count)
    }
    switch RangeField(range, of: count) {
    case .ignored: return HTTPSelection(self, .ok, 0..<count)
    case .part(let part): return HTTPSelection(self, .partialContent, part)
    case .notSatisfiable: return HTTPSelection(self, .rangeNotSatisfiable)
    }
  }

  /// Whether a condition names this representation; a malformed one names none.
  private func matches(_ headers: HTTPHeaders, _ name: String, isStrong: Bool) -> Bool {
    let value = headers.values(of: name).joined(separator: ",")
    if value == "*" { return true }
    return EntityTag.list(value)?.contains { isStrong ? $0.matches(entityTag) : $0.matchesWeakly(entityTag) } ?? false
  }

  /// Whether `If-Range` allows the range. A client with a part of other bytes must get everything.
  private func isRangeWanted(_ headers: HTTPHeaders) -> Bool {
    let values = headers.values(of: "If-Range")
    guard let value = values.first else { return true }
    return values.count == 1 && EntityTag(value)?.matches(entityTag) == true
  }
}

/// The part of a representation that answers a request.
public struct HTTPSelection: Sendable {
  /// 200, 206, 304, 412 or 416.
  public let status: HTTPStatus
  /// The bytes to send, which may be empty; nil for a response without a body (304, 412 and 416).
  public let range: Range<Int>?
  /// The fields that the status requires: `ETag`, `Accept-Ranges` and `Content-Range`.
  public let headers: [(name: String, value: String)]

  init(_ representation: HTTPRepresentation, _ status: HTTPStatus, _ range: Range<Int>? = nil) {
    self.status = status
    self.range = range
    let described = [("ETag", "\"\(representation.entityTag)\""), ("Accept-Ranges", "bytes")]
    headers =
      switch (status, range) {
      case (.partialContent, let part?):
        described + [("Content-Range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(representation.count)")]
      case (.rangeNotSatisfiable, _): [("Content-Range", "bytes */\(representation.count)")]
      case (.preconditionFailed, _): []
      default: described
      }
  }
}

/// The value of a `Range` field for a representation of some length (RFC 9110, section 14.1.2).
private enum RangeField {
  /// The value is not supported.
  case ignored
  case part(Range<Int>)
  case notSatisfiable

  init(_ value: String, of count: Int) {
    self = .ignored
    let sides = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard sides.count == 2, sides[0].lowercased() == "bytes" else { return }
    let ranges = sides[1].split(separator: ",").map { $0.trimmed }.filter { !$0.isEmpty }
    let ends = ranges.first?.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false) ?? []
    guard ranges.count == 1, ends.count == 2 else { return }
    if ends[0].isEmpty {
      guard let length = Self.number(ends[1]) else { return }
      if length == 0 {
        self = .notSatisfiable
      } else if count > 0 {
        // The last bytes of an empty representation are all of it, and not a part, since no field could name that.
        self = .part(max(0, count - length)..<count)
      }
    } else {
      guard let first = Self.number(ends[0]), let last = ends[1].isEmpty ? .max : Self.number(ends[1]), first <= last else { return }
      self = first < count ? .part(first..<min(last, count - 1) + 1) : .notSatisfiable
    }
  }

  /// A number of digits. One that overflows becomes the largest `Int`, which is beyond every end.
  private static func number(_ text: Substring) -> Int? {
    guard !text.isEmpty else { return nil }
    var number = 0
    for byte in text.utf8 {
      guard 0x30...0x39 ~= byte else { return nil }
      let (tenfold, isTooLarge) = number.multipliedReportingOverflow(by: 10)
      let (sum, isBeyond) = tenfold.addingReportingOverflow(Int(byte - 0x30))
      number = isTooLarge || isBeyond ? .max : sum
    }
    return number
  }
}
