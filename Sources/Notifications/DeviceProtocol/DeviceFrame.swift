internal import JSON

/// A frame that a device has sent.
public enum DeviceFrame {
  /// The device says who it is.
  case hello(Hello)
  /// The deliveries that the device stored, showed or dropped; borrowed from the frame's bytes.
  case ack(AckFrame)
  /// The person's response.
  case response(ResponseFrame)
  /// The changed settings.
  case settings(SettingsFrame)
  /// The application's categories.
  case categories(CategoriesFrame)
  /// The device leaves.
  case unregister(UnregisterFrame)
  /// The device asks for a new link to an attachment.
  case link(LinkFrame)
  /// A type that this version does not know. It is ignored.
  case unknown

  /// Reads a text frame. An `ack` allocates nothing and borrows the bytes; the others copy.
  ///
  /// An error with a `subject` is answered by `refused`. An error without one closes the connection.
  public init(_ text: UnsafeRawBufferPointer) throws(DeviceFrameError) {
    var scanner = JSONScanner(text)
    var head = Head()
    do throws(JSONError) {
      try head.read(&scanner)
    } catch {
      throw DeviceFrameError(frame: "", field: "", rule: "A frame is one JSON object by RFC 8259 (byte \(error.offset)).")
    }
    guard let type = head.type, type.kind == .string else {
      throw DeviceFrameError(frame: "", field: "type", rule: "A frame has a member type, a string.")
    }
    if scanner.matches(type, "ack") {
      self = .ack(try AckFrame(scanner, deliveries: head.deliveries, dropped: head.dropped, updated: head.updated))
      return
    }
    guard let known = DeviceFrameType.allCases.first(where: { scanner.matches(type, text: $0.rawValue) }) else {
      self = .unknown
      return
    }
    let subject = head.subject(scanner, known)
    do throws(FieldError) {
      let reader = try ObjectReader(parsing: text)
      switch known {
      case .hello: self = .hello(try Hello(reader))
      case .response: self = .response(try ResponseFrame(reader))
      case .settings: self = .settings(try SettingsFrame(reader))
      case .categories: self = .categories(try CategoriesFrame(reader))
      case .unregister: self = .unregister(try UnregisterFrame(reader))
      case .link: self = .link(try LinkFrame(reader))
      case .ack: self = .unknown
      }
    } catch {
      throw DeviceFrameError(error, frame: known.rawValue, subject: subject)
    }
  }

  /// The members that identify a frame, found in one pass that checks the text.
  private struct Head {
    var type: JSONSpan?
    var deliveries: JSONSpan?
    var dropped: JSONSpan?
    var updated: JSONSpan?
    var response: JSONSpan?
    var request: JSONSpan?

    mutating func read(_ scanner: inout JSONScanner) throws(JSONError) {
      try scanner.openObject()
      while let (key, value) = try scanner.nextMember() {
        if scanner.matches(key, "type") {
          type = value
        } else if scanner.matches(key, "deliveries") {
          deliveries = value
        } else if scanner.matches(key, "dropped") {
          dropped = value
        } else if scanner.matches(key, "updated") {
          updated = value
        } else if scanner.matches(key, "response") {
          response = value
        } else if scanner.matches(key, "request") {
          request = value
        }
      }
      try scanner.finish()
    }

    /// Returns what a refusal names; nil if the frame has no valid id.
    func subject(_ scanner: JSONScanner, _ type: DeviceFrameType) -> FrameSubject? {
      let span = type == .response ? response : request
      guard type != .hello, let span, let id = scanner.text(span), ObjectReader.isPlain(id, longest: FrameLimits.idBytes) else {
        return nil
      }
      return type == .response ? .response(id) : .request(id)
    }
  }
}
