/// A response's head, assembled from the lines that libcurl delivers, within a limit.
///
/// libcurl has checked their syntax. An interim response (RFC 9110, section 15.2) is replaced by the next. Lines after the final head are a
/// trailer, and only their bytes are counted.
struct ResponseHead {
  private let maximumBytes: Int
  private var total = 0
  private var bytes: [UInt8] = []
  private var fields: [HTTPHeaders.Field] = []
  private var status = 0
  /// Whether the final head is complete.
  private(set) var isComplete = false

  init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

  /// Takes a line with its end; false if it is one byte too many.
  mutating func take(_ line: UnsafeRawBufferPointer) -> Bool {
    total += line.count
    guard total <= maximumBytes else { return false }
    if isComplete { return true }
    let text = line.prefix { $0 != 0x0D && $0 != 0x0A }
    if text.isEmpty {
      isComplete = status >= 200
    } else if text.starts(with: "HTTP/".utf8) {
      bytes = []
      fields = []
      let code = text.split(separator: 0x20, omittingEmptySubsequences: true).dropFirst().first
      status = code.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
    } else if let colon = text.firstIndex(of: UInt8(ascii: ":")), colon > text.startIndex {
      let value = text[(colon + 1)...].trimmed
      let start = bytes.count
      bytes.append(contentsOf: text[..<colon])
      bytes.append(contentsOf: value)
      let middle = start + colon - text.startIndex
      fields.append(HTTPHeaders.Field(nameStart: start, nameEnd: middle, valueStart: middle, valueEnd: bytes.count))
    }
    return true
  }

  /// The response without its body.
  var response: HTTPClientResponse {
    HTTPClientResponse(status: HTTPStatus(rawValue: status), headers: HTTPHeaders(bytes: bytes, fields: fields))
  }
}
