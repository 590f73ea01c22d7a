internal import JSON

/// A frame that the cluster has sent, as a device reads it.
public enum ServerFrame: Sendable, Equatable {
  /// The answer to hello.
  case welcome(WelcomeFrame)
  /// A notification.
  case notify(NotifyFrame)
  /// Notifications to remove.
  case remove(RemoveFrame)
  /// The cluster accepted a response or a request.
  case accepted(FrameSubject)
  /// The cluster refused a response or a request.
  case refused(RefusedFrame)
  /// A link to an attachment.
  case linked(LinkedFrame)
  /// What can no longer be delivered.
  case gap(GapFrame)
  /// A sign of life.
  case heartbeat
  /// The connection will end soon.
  case goaway(GoawayFrame)
  /// A type that this version does not know. It is ignored.
  case unknown

  /// Reads a text frame. All members are copied.
  public init(_ text: UnsafeRawBufferPointer) throws(DeviceFrameError) {
    var frame = ""
    do throws(FieldError) {
      let reader = try ObjectReader(parsing: text)
      guard let type = reader["type"]?.stringValue else { throw reader.error("type", "A frame has a member type, a string.") }
      guard let known = ServerFrameType(rawValue: type) else {
        self = .unknown
        return
      }
      frame = type
      switch known {
      case .welcome: self = .welcome(try WelcomeFrame(reader))
      case .notify:
        self = .notify(try NotifyFrame(reader, payload: Self.source("payload", in: text), trigger: Self.source("trigger", in: text)))
      case .remove: self = .remove(try RemoveFrame(reader))
      case .accepted: self = .accepted(try FrameSubject(reader))
      case .refused: self = .refused(try RefusedFrame(reader))
      case .linked: self = .linked(try LinkedFrame(reader))
      case .gap: self = .gap(try GapFrame(reader))
      case .heartbeat: self = .heartbeat
      case .goaway: self = .goaway(try GoawayFrame(reader))
      }
    } catch {
      throw DeviceFrameError(error, frame: frame)
    }
  }

  /// Returns the bytes of a member's value in a checked text. A tree would not keep them.
  private static func source(_ name: String, in text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    var scanner = JSONScanner(text)
    guard (try? scanner.openObject()) != nil else { return nil }
    var found: JSONSpan?
    while let key = try? scanner.nextKey(), let value = try? scanner.skip() {
      if scanner.matches(key, text: name) { found = value.kind == .null ? nil : value }
    }
    return found.map { scanner.source($0) }
  }
}
