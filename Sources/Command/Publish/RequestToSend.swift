import EventLoop
import Notifications
import Worker

/// A request as the record that it will be.
struct RequestToSend: Sendable {
  /// Where it stands in its file, from 1; 0 for one that was given by flags.
  let line: Int
  /// Its `apns-id`, as it will be in the header.
  let id: String
  /// The record's key.
  let key: [UInt8]
  /// The record's headers in their order.
  let headers: [(name: String, value: String)]
  /// The record's value.
  let value: [UInt8]?

  /// Checks it by every rule that the cluster will check it by.
  func check(_ limits: RequestLimits) throws(Rejection) {
    // One buffer for all, since a view borrows its parts.
    var bytes = key
    for (name, value) in headers {
      bytes += name.utf8
      bytes += value.utf8
    }
    let payload = value ?? []
    let result = bytes.withUnsafeBytes { bytes in
      payload.withUnsafeBytes { payload in
        var position = 0
        func next(_ count: Int) -> UnsafeRawBufferPointer {
          defer { position += count }
          return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
        }
        let key = next(key.count)
        var fields = RequestHeaders()
        for (name, value) in headers { fields.take(name: next(name.utf8.count), value: next(value.utf8.count)) }
        let record = RequestRecord(
          key: key, value: payload, headers: fields, topic: UnsafeRawBufferPointer(start: nil, count: 0),
          position: SourcePosition(partition: 0, offset: 0, timestamp: WallClock.milliseconds()))
        return RequestView.read(record, limits: limits).rejection
      }
    }
    if let result { throw result }
  }
}

extension RequestReading {
  fileprivate var rejection: Rejection? {
    if case .rejected(let rejection, _) = self { rejection } else { nil }
  }
}
