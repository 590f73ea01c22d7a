/// The representation of a resource: the number of its bytes, and a tag that no other bytes have.
///
/// It evaluates the conditions and the range that browsers and their media elements send (RFC 9110, sections 13 and 14), without I/O: a
/// known tag, and one range from its first byte on, which may depend on the tag. It ignores anything else, and answers with everything.
public struct HTTPRepresentation: Hashable, Sendable {
  /// The strong entity tag, without the quotes, such as a digest.
  let entityTag: String
  /// The number of bytes.
  let count: Int

  /// Describes a representation.
  ///
  /// - Parameters:
  ///   - entityTag: visible ASCII characters without quotes and commas.
  ///   - count: not negative.
  public init(entityTag: String, count: Int) {
    let isPlain = entityTag.utf8.allSatisfy { 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: ",") }
    precondition(isPlain && count >= 0, "a representation has a plain entity tag, and not fewer than no bytes")
    self.entityTag = entityTag
    self.count = count
  }

  /// The answer to a GET or HEAD request. A range applies to GET only.
  public func selection(for request: HTTPRequest) -> HTTPSelection {
    let headers = request.headers
    // A proxy that compresses the bytes makes the tag a weak one.
    let known = headers.list(of: "If-None-Match")
    if known.contains(where: { isTag($0) || $0.utf8.starts(with: "W/".utf8) && isTag($0.dropFirst(2)) }) {
      return HTTPSelection(self, .notModified)
    }
    // A client with a part of other bytes must get everything.
    let (ranges, conditions) = (headers.values(of: "Range"), headers.values(of: "If-Range"))
    guard request.method == .get, ranges.count == 1, conditions.allSatisfy(isTag), let ends = Self.ends(of: ranges[0]) else {
      return HTTPSelection(self, .ok, 0..<count)
    }
    guard ends.lowerBound < count else { return HTTPSelection(self, .rangeNotSatisfiable) }
    return HTTPSelection(self, .partialContent, ends.lowerBound..<min(ends.upperBound, count - 1) + 1)
  }

  private func isTag(_ text: some StringProtocol) -> Bool { text.utf8.elementsEqual("\"\(entityTag)\"".utf8) }

  /// The first and the last byte of `bytes=FIRST-` or `bytes=FIRST-LAST`; nil for any other value.
  private static func ends(of range: String) -> ClosedRange<Int>? {
    guard range.utf8.starts(with: "bytes=".utf8) else { return nil }
    let ends = range.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2, let first = number(ends[0]), let last = ends[1].isEmpty ? .max : number(ends[1]), first <= last else {
      return nil
    }
    return first...last
  }

  private static func number(_ text: Substring) -> Int? { text.utf8.allSatisfy { 0x30...0x39 ~= $0 } ? Int(text) : nil }
}

/// The part of a representation that answers a request.
public struct HTTPSelection: Sendable {
  /// 200, 206, 304 or 416.
  public let status: HTTPStatus
  /// The bytes to send, which may be empty; nil for a response without a body (304 and 416).
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
      default: described
      }
  }
}
