internal import JSON
internal import Notifications

/// One line of the state file: a fact that must survive the end of the process.
///
/// | member | what |
/// |---|---|
/// | `device`, `application` | whose file it is: the first line |
/// | `took`, `at` | a notification was taken, with the frame's text |
/// | `noted`, `revision`, `at` | the newest revision of an identifier, of which nothing was shown |
/// | `removed`, `revision`, `at` | the cluster took identifiers away |
/// | `removedAll`, `at` | the cluster took away all that is older than this revision |
/// | `floor` | the revision of the newest removal of all: in snapshots |
/// | `cleared` | identifiers left the list |
/// | `fired`, `at` | a waiting notification came due |
/// | `response` | what the person did, not accepted yet, with the frame |
/// | `settled` | a response was accepted or refused |
/// | `id`, `at` | an id that was taken: in snapshots |
/// | `delivered` or `pending`, `at` | a notification in its list, with the frame's text: in snapshots, the oldest first |
///
/// A notification's frame is a string, not an object. Its payload and trigger are foreign JSON, which may have line breaks and be nested as
/// deep as a text can be.
enum StateRecord: Equatable {
  case owner(device: String, application: Name)
  case took(NotifyFrame, at: Int64)
  case noted(identifier: Name, revision: String, at: Int64)
  case removed([Name], revision: String, at: Int64)
  case removedAll(revision: String, at: Int64)
  case floor(String)
  case cleared([Name])
  case fired(Name, at: Int64)
  case response(ResponseFrame)
  case settled(String)
  case id(Name, at: Int64)
  case listed(NotifyFrame, at: Int64, isPending: Bool)

  /// Reads a line's object; nil if it is none of these, such as one of a later version.
  init?(_ value: JSONValue) {
    let at = value["at"]?.integerValue.map { Timestamp.bounded($0) }
    if let device = value["device"]?.stringValue, let application = value["application"]?.nameValue {
      self = .owner(device: device, application: application)
    } else if let frame = Self.notification(value["took"]), let at {
      self = .took(frame, at: at)
    } else if let identifier = value["noted"]?.nameValue, let revision = value["revision"]?.stringValue, let at {
      self = .noted(identifier: identifier, revision: revision, at: at)
    } else if let identifiers = Self.names(value["removed"]), let revision = value["revision"]?.stringValue, let at {
      self = .removed(identifiers, revision: revision, at: at)
    } else if let revision = value["removedAll"]?.stringValue, let at {
      self = .removedAll(revision: revision, at: at)
    } else if let revision = value["floor"]?.stringValue {
      self = .floor(revision)
    } else if let identifiers = Self.names(value["cleared"]) {
      self = .cleared(identifiers)
    } else if let identifier = value["fired"]?.nameValue, let at {
      self = .fired(identifier, at: at)
    } else if let response = Self.response(value["response"]) {
      self = .response(response)
    } else if let id = value["settled"]?.stringValue {
      self = .settled(id)
    } else if let id = value["id"]?.nameValue, let at {
      self = .id(id, at: at)
    } else if let frame = Self.notification(value["delivered"]), let at {
      self = .listed(frame, at: at, isPending: false)
    } else if let frame = Self.notification(value["pending"]), let at {
      self = .listed(frame, at: at, isPending: true)
    } else {
      return nil
    }
  }

  /// Appends the line's object.
  func write(to json: inout JSONWriter) {
    json.openObject()
    switch self {
    case .owner(let device, let application):
      json.member("device", device)
      json.member("application", application)
    case .took(let frame, let at):
      json.key("took")
      Self.write(frame, &json)
      json.member("at", at)
    case .noted(let identifier, let revision, let at):
      json.member("noted", identifier)
      json.member("revision", revision)
      json.member("at", at)
    case .removed(let identifiers, let revision, let at):
      json.key("removed")
      Self.write(identifiers, &json)
      json.member("revision", revision)
      json.member("at", at)
    case .removedAll(let revision, let at):
      json.member("removedAll", revision)
      json.member("at", at)
    case .floor(let revision): json.member("floor", revision)
    case .cleared(let identifiers):
      json.key("cleared")
      Self.write(identifiers, &json)
    case .fired(let identifier, let at):
      json.member("fired", identifier)
      json.member("at", at)
    case .response(let response):
      json.key("response")
      response.write(to: &json)
    case .settled(let id): json.member("settled", id)
    case .id(let id, let at):
      json.member("id", id)
      json.member("at", at)
    case .listed(let frame, let at, let isPending):
      if isPending { json.key("pending") } else { json.key("delivered") }
      Self.write(frame, &json)
      json.member("at", at)
    }
    json.closeObject()
  }

  // MARK: Parts

  private static func names(_ value: JSONValue?) -> [Name]? { value?.elements?.compactMap(\.nameValue) }

  /// The protocol's own rules read a frame. Earlier versions wrote an object, without its white space.
  private static func notification(_ value: JSONValue?) -> NotifyFrame? {
    guard let value, var text = value.stringValue ?? value.members.map({ _ in value.text }) else { return nil }
    let frame = text.withUTF8 { try? ServerFrame(UnsafeRawBufferPointer($0)) }
    guard case .notify(let notification)? = frame else { return nil }
    return notification
  }

  /// Any response of the person is restored: only the cluster judges it by the protocol's rules.
  private static func response(_ value: JSONValue?) -> ResponseFrame? {
    guard let value, let id = value["response"]?.stringValue, let receipt = value["receipt"]?.stringValue,
      let identifier = value["identifier"]?.nameValue, let action = value["action"]?.nameValue
    else { return nil }
    return ResponseFrame(
      response: id, receipt: receipt, identifier: identifier, action: action, userText: value["userText"]?.stringValue,
      at: value["at"]?.integerValue)
  }

  private static func write(_ names: [Name], _ json: inout JSONWriter) {
    json.openArray()
    for name in names { json.string(name.text) }
    json.closeArray()
  }

  private static func write(_ frame: NotifyFrame, _ json: inout JSONWriter) {
    var text = JSONWriter(capacity: frame.payload.count + 512)
    text.openObject()
    text.member("type", ServerFrameType.notify.rawValue)
    text.key("delivery")
    text.integer(frame.delivery)
    text.member("id", frame.id)
    text.member("identifier", frame.identifier)
    text.member("revision", frame.revision)
    text.member("expiration", frame.expiration)
    text.member("priority", frame.priority)
    text.member("pushType", frame.pushType)
    if var trigger = frame.trigger { trigger.withUTF8 { text.member("trigger", raw: UnsafeRawBufferPointer($0)) } }
    if let traceparent = frame.traceparent { text.member("traceparent", traceparent) }
    if !frame.attachments.isEmpty {
      text.key("attachments")
      JSONValue.array(frame.attachments.map(\.object)).write(to: &text)
    }
    frame.payload.withUnsafeBytes { text.member("payload", raw: $0) }
    // A response without a receipt was sent without one.
    if !frame.receipt.isEmpty { text.member("receipt", frame.receipt) }
    text.closeObject()
    text.withUnsafeBytes { json.string(utf8: $0) }
  }
}
