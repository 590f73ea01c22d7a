import JSON
import Notifications

/// What a run has left, in bytes: so it is remembered for whoever is given the notification again.
///
/// The layout's number (1 byte), the digest of the chain that has left it (8), how many outcomes (1); of each the state (1), the name behind its length (1) and how long it took in
/// microseconds (8); the attachments that are in the media store, behind their length (4); then the payload, where the content is not what
/// was published.
extension ExtensionRun {
  private static let layout: UInt8 = 2

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

  /// The run through this chain that has left these bytes; nil where they are none, or are another chain's.
  ///
  /// - Parameter published: the content that it began with.
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
