import JSON
public import Notifications

/// What the content that a service extension leaves has to keep.
public struct ContentRules: Sendable {
  /// The largest payload, in bytes. It does not travel as a request any more, so it may be larger than one.
  public let payloadBytes: Int

  /// The rules of a cluster.
  ///
  /// - Parameter requests: what it accepts as a request: a result may always be as large.
  public init(_ requests: RequestLimits = RequestLimits()) { payloadBytes = max(16_384, requests.payloadBytes) }

  /// The payload's bytes and what it asks for.
  ///
  /// - Throws: an error that names the member and the rule: those of a request's payload, its size, and that there is still a text to
  ///   show, since no extension may suppress a notification.
  public func write(_ content: MutableContent) throws(ExtensionFailure) -> WrittenContent {
    // Copies share their bytes until they are written.
    guard !content.payload.isLarger(than: payloadBytes) else {
      throw ExtensionFailure("the result is much larger than a payload, which has at most \(payloadBytes) bytes")
    }
    var writer = JSONWriter()
    content.payload.write(to: &writer)
    let bytes = writer.withUnsafeBytes { Array($0) }
    guard bytes.count <= payloadBytes else {
      throw ExtensionFailure("the result has \(bytes.count) bytes; a payload has at most \(payloadBytes)")
    }
    let checked = bytes.withUnsafeBytes { source -> Result<(PayloadFlags, Range<Int>), ExtensionFailure> in
      do throws(Rejection) {
        let facts = try PayloadFacts(checking: source)
        return .success((facts.flags, source.range(of: facts.categorySource)))
      } catch {
        return .failure(ExtensionFailure("the result breaks a rule: \(error.field): \(error.rule)"))
      }
    }
    let (flags, category) = try checked.get()
    guard flags.contains(.alert) else {
      throw ExtensionFailure("the result has no title, subtitle or body any more; no extension suppresses a notification")
    }
    try ContentAttachment.check(content.attachments)
    var attachments = ByteBuffer(capacity: 64)
    NotificationAttachment.append(content.attachments.compactMap(\.attachment), to: &attachments)
    return WrittenContent(
      payload: bytes, attachments: attachments.withUnsafeBytes { Array($0) }, flags: flags, category: category)
  }
}

/// Content that keeps the rules, as it goes to a device.
public struct WrittenContent: Sendable {
  /// The payload: one JSON object.
  public let payload: [UInt8]
  /// The attachments that are in the media store, as ``NotificationAttachment/append(_:to:)`` writes them.
  public let attachments: [UInt8]
  fileprivate let flags: PayloadFlags
  /// Where the category stands in the payload; empty when there is none.
  fileprivate let category: Range<Int>

  /// Lends the payload and what was found in it when it was checked.
  public func withPayload<Result>(_ body: (UnsafeRawBufferPointer, PayloadFacts) throws -> Result) rethrows -> Result {
    try payload.withUnsafeBytes { payload in
      try body(payload, PayloadFacts(flags: flags, categorySource: UnsafeRawBufferPointer(rebasing: payload[category])))
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Where a part of these bytes stands; empty for an empty part.
  fileprivate func range(of part: UnsafeRawBufferPointer) -> Range<Int> {
    guard let start = baseAddress, let first = part.baseAddress, !part.isEmpty else { return 0..<0 }
    return (first - start)..<(first - start + part.count)
  }
}

/// Why an extension has not finished with a content of its own. The text is the program's own; of a payload it has at most the plain name
/// of an unknown member.
public struct ExtensionFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// A sentence without its beginning and its end, in words of the program's own: it may be logged.
  public let reason: String
  /// What somebody else says of it, where there is that: it may have anything in it, and is for whoever tries the extension.
  public let said: String?

  /// A failure for this reason.
  public init(_ reason: String, said: String? = nil) { (self.reason, self.said) = (reason, said) }

  /// The reason, and what somebody else says of it.
  public var description: String { said.map { "\(reason): \($0)" } ?? reason }
}
