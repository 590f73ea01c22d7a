import JSON
import Notifications

/// The result of a run in bytes, which is stored for the case that the notification comes again.
///
/// The layout: its number (1 byte), the digest of the chain (8), the number of outcomes (1). Then for each outcome the state (1), the name
/// after its length (1), and the duration in microseconds (8). Then the attachments in the media store, after their length (4), and the
/// payload, if it is not the published one.
extension ExtensionRun {
  private static var layout: UInt8 { UInt8(Layout.extensionRun.newest) }

  /// The bytes of a run through this chain.
  public func bytes(of chain: ExtensionChain) -> [UInt8] {
    var buffer = ByteBuffer(capacity: 256)
    buffer.append(Self.layout)
    buffer.append(chain.digest)
    buffer.append(UInt8(outcomes.count))
    for outcome in outcomes {
      buffer.append(outcome.state.rawValue)
      buffer.append(UInt8(outcome.name.utf8.count))
      buffer.append(outcome.name)
      buffer.append(UInt64(max(0, outcome.microseconds)))
    }
    buffer.append(UInt32(written?.attachments.count ?? 0))
    written?.attachments.withUnsafeBytes { buffer.append($0) }
    written?.withPayload { payload, _ in buffer.append(payload) }
    return buffer.withUnsafeBytes { Array($0) }
  }

  /// Reads the run through this chain from its bytes; nil if they are invalid, or another chain's.
  ///
  /// - Parameter published: the content at its beginning.
  public init?(_ bytes: [UInt8], of chain: ExtensionChain, published: MutableContent, _ rules: ContentRules) {
    self.init(published)
    let isRead = bytes.withUnsafeBytes { bytes -> Bool in
      var reader = ByteReader(bytes)
      guard reader.byte() == Self.layout, reader.integer(UInt64.self) == chain.digest, let count = reader.byte() else { return false }
      for _ in 0..<count {
        guard let state = reader.byte().flatMap(ExtensionState.init(rawValue:)), let name = reader.shortField(),
          let microseconds = reader.integer(UInt64.self).flatMap({ Int64(exactly: $0) })
        else { return false }
        note(String(decoding: name, as: UTF8.self), state, nil, microseconds: microseconds)
      }
      guard let count = reader.integer(UInt32.self), let attachments = reader.bytes(Int(count)).flatMap(NotificationAttachment.list) else {
        return false
      }
      let payload = reader.rest
      if payload.isEmpty { return attachments.isEmpty }
      guard let value = try? JSONValue(parsing: payload) else { return false }
      let content = MutableContent(payload: value, attachments: attachments.map { ContentAttachment($0) })
      return (try? take(content, rules)) != nil
    }
    guard isRead else { return nil }
  }
}
