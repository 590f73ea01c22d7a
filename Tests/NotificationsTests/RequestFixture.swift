import JSON

@testable import Notifications

/// A request record whose bytes stay until the tests end, so that a view may outlive the fixture.
final class RequestFixture {
  private(set) var record: RequestRecord

  init(
    key: String? = nil, value: String? = #"{"aps":{"alert":"Hello"}}"#, headers: [(String, String?)],
    topic: String = "notifications.requests",
    position: SourcePosition = SourcePosition(partition: 3, offset: 42, timestamp: 1_700_000_000_123), cluster: String? = nil
  ) {
    record = RequestRecord(key: .empty, value: .empty, headers: RequestHeaders(), topic: .empty, position: position)
    record.key = bytes(key)
    record.value = bytes(value)
    record.topic = bytes(topic)
    record.cluster = bytes(cluster)
    for (name, value) in headers {
      record.headers.take(name: bytes(name), value: bytes(value))
    }
  }

  func bytes(_ text: String?) -> UnsafeRawBufferPointer {
    guard let text else { return .empty }
    let block = UnsafeMutableRawBufferPointer.allocate(byteCount: max(text.utf8.count, 1), alignment: 1)
    block.copyBytes(from: text.utf8)
    return UnsafeRawBufferPointer(rebasing: block[0..<text.utf8.count])
  }

  func read(_ limits: RequestLimits = RequestLimits()) -> RequestReading { RequestView.read(record, limits: limits) }

  /// A request that keeps every rule, with some headers replaced; a `nil` value takes the header away.
  static func valid(
    _ changes: [String: String?] = [:], value: String? = #"{"aps":{"alert":"Hello"}}"#, key: String? = nil, cluster: String? = nil
  ) -> RequestFixture {
    var headers: [String: String] = ["apns-topic": "com.example.shop", "target": "device:\(token)"]
    for (name, value) in changes { headers[name] = value }
    return RequestFixture(key: key, value: value, headers: headers.map { ($0.key, $0.value) }, cluster: cluster)
  }

  static let token = String(repeating: "0123456789abcdef", count: 4)
}

extension RequestReading {
  var view: RequestView? { if case .accepted(let view) = self { view } else { nil } }
  var rejection: Rejection? { if case .rejected(let rejection, _) = self { rejection } else { nil } }
}

extension JSONWriter {
  static func text(_ body: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    body(&writer)
    return writer.text
  }
}

/// Calls the body with the bytes of a text.
func withBytes<Result>(_ text: String, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
  var text = text
  return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
}
