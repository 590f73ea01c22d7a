import JSON
public import Notifications

/// The rules for the result of a service extension.
public struct ContentRules: Sendable {
  /// The most bytes of a payload. A result is not sent as a request any more, so it may be larger than one.
  public let payloadBytes: Int

  /// The rules of a cluster.
  ///
  /// - Parameter requests: the limits of its requests. A result may always be as large.
  public init(_ requests: RequestLimits = RequestLimits()) { payloadBytes = max(16_384, requests.payloadBytes) }

  /// Writes the content, and checks it.
  ///
  /// - Throws: an error with the member and the rule. The rules are those of a request's payload, the size, and that a text remains, since
  ///   no extension may suppress a notification.
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

/// Valid content in the form for a device.
public struct WrittenContent: Sendable {
  /// The payload: one JSON object.
  public let payload: [UInt8]
  /// The attachments that are in the media store, as ``NotificationAttachment/append(_:to:)`` writes them.
  public let attachments: [UInt8]
  fileprivate let flags: PayloadFlags
  /// The range of the category in the payload; empty if there is none.
  fileprivate let category: Range<Int>

  /// Lends the payload, with the facts from its check.
  public func withPayload<Result>(_ body: (UnsafeRawBufferPointer, PayloadFacts) throws -> Result) rethrows -> Result {
    try payload.withUnsafeBytes { payload in
      try body(payload, PayloadFacts(flags: flags, categorySource: UnsafeRawBufferPointer(rebasing: payload[category])))
    }
  }
}

extension UnsafeRawBufferPointer {
  /// The range of a part of these bytes; empty for an empty part.
  fileprivate func range(of part: UnsafeRawBufferPointer) -> Range<Int> {
    guard let start = baseAddress, let first = part.baseAddress, !part.isEmpty else { return 0..<0 }
    return (first - start)..<(first - start + part.count)
  }
}

/// Why an extension has not finished with a content of its own. The text is the program's own. From a payload it contains at most the plain
/// name of an unknown member.
public struct ExtensionFailure: Error, Sendable, Hashable, CustomStringConvertible {
  /// A part of a sentence in the program's own words, which may be logged.
  public let reason: String
  /// A text from another program, if there is one. It may contain anything, and is for a person who tries the extension.
  public let said: String?

  /// A failure for this reason.
  public init(_ reason: String, said: String? = nil) { (self.reason, self.said) = (reason, said) }

  /// The reason, and the text from another program.
  public var description: String { said.map { "\(reason): \($0)" } ?? reason }
}
