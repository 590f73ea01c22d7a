/// A whole request for a handler.
public struct HTTPRequest: Sendable {
  /// The method.
  public let method: HTTPMethod
  /// The target's path as sent: not decoded, and matched byte by byte.
  public let path: String
  /// The part after the target's question mark, as sent; nil without one.
  public let query: String?
  /// The header fields.
  public let headers: HTTPHeaders
  /// The body, without transfer coding; at most the configured number of bytes.
  public let body: [UInt8]

  /// The first value of a query parameter, with percent and plus signs decoded; nil if it is absent or not UTF-8.
  public func queryParameter(_ name: String) -> String? {
    guard let query else { return nil }
    for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      if let key = parts.first, percentDecoded(key) == name { return parts.count > 1 ? percentDecoded(parts[1]) : "" }
    }
    return nil
  }
}

private func percentDecoded(_ text: Substring.UTF8View.SubSequence) -> String? {
  var bytes: [UInt8] = []
  var rest = text
  while let byte = rest.popFirst() {
    switch byte {
    case UInt8(ascii: "+"): bytes.append(0x20)
    case UInt8(ascii: "%"):
      guard let high = rest.popFirst().flatMap(hexDigit), let low = rest.popFirst().flatMap(hexDigit) else { return nil }
      bytes.append(high << 4 | low)
    default: bytes.append(byte)
    }
  }
  return String(validating: bytes, as: UTF8.self)
}

private func hexDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case 0x30...0x39: byte - 0x30
  case 0x41...0x46: byte - 0x41 + 10
  case 0x61...0x66: byte - 0x61 + 10
  default: nil
  }
}
