import EventLoop

/// A whole request for a handler.
public struct HTTPRequest: Sendable {
  /// The method.
  let method: HTTPMethod
  /// The target's path as sent: not decoded, and matched byte by byte.
  public let path: String
  /// The part after the target's question mark, as sent; nil without one.
  let query: String?
  /// The header fields.
  public let headers: HTTPHeaders
  /// The body, without transfer coding; at most the configured number of bytes.
  public let body: [UInt8]

  /// The first value of a query parameter, with percent and plus signs decoded; nil if it is absent or not UTF-8.
  public func queryParameter(_ name: String) -> String? {
    guard let query else { return nil }
    for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      if let key = parts.first, PercentEncoding.decode(key, isQuery: true) == name {
        return parts.count > 1 ? PercentEncoding.decode(parts[1], isQuery: true) : ""
      }
    }
    return nil
  }
}
