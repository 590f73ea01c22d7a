import DeviceClient
import HTTP
import JSON
import Notifications

/// The events of a device as JSON, one object a line. They are frames of both directions, and their results.
extension DeviceEvent {
  /// The line.
  var json: JSONValue {
    switch self {
    case .frame(let direction, let text):
      ["frame": (try? JSONValue(parsing: text)) ?? .string(text), "direction": .string(direction.rawValue)]
    case .connected(let welcome, let url):
      Self.event(
        "connected",
        [
          ("url", .string(url)), ("session", .string(welcome.session)), ("now", .integer(welcome.now)),
          ("window", .integer(Int64(welcome.window))),
          ("rememberSeconds", .integer(welcome.rememberSeconds)),
        ])
    case .closed(let code, let reason, let wait):
      Self.event(
        "closed",
        [
          ("code", .integer(Int64(code))), ("name", CloseCode(rawValue: code).map { .string($0.name.description) }),
          ("reason", .string(reason)), ("reconnectAfterMs", wait.map { .integer(Int64($0)) } ?? .null),
        ])
    case .unreachable(let reason, let wait):
      Self.event("unreachable", [("reason", .string(reason)), ("reconnectAfterMs", wait.map { .integer(Int64($0)) } ?? .null)])
    case .shown(let notification): Self.event("shown", notification.members)
    case .updated(let notification): Self.event("updated", notification.members)
    case .silent(let notification): Self.event("silent", notification.members)
    case .forwarded(let notification): Self.event("forwarded", notification.members)
    case .held(let notification): Self.event("held", notification.members)
    case .dropped(let delivery, let id, let identifiers, let reason):
      Self.event(
        "dropped",
        [
          ("delivery", delivery.flatMap { Int64(exactly: $0) }.map { .integer($0) }), ("id", id.map { .string($0) }),
          ("identifiers", .array(identifiers.map { .string($0.text) })), ("reason", .string(reason.rawValue)),
        ])
    case .removed(let identifiers, let notifications):
      Self.event(
        "removed",
        [
          ("identifiers", .array(identifiers.map { .string($0.text) })),
          ("wereListed", .array(notifications.map { .string($0.identifier.text) })),
        ])
    case .attachmentMissing(let notification, let attachment, let failure):
      Self.event(
        "attachmentMissing",
        [
          ("identifier", .string(notification.text)), ("attachment", .string(attachment.text)),
          ("reason", .string(failure.reason.rawValue)), ("message", .string(failure.description)),
        ])
    case .extensionFailed(let notification, let reason):
      Self.event("extensionFailed", [("identifier", .string(notification.text)), ("message", .string(reason))])
    case .activated(let identifier): Self.event("activated", [("identifier", .string(identifier.text))])
    case .unhandled(let notification): Self.event("unhandled", notification.members)
    case .panel(let panel): Self.event("panel", panel.members)
    case .panelClosed(let panel): Self.event("panelClosed", panel.members)
    case .accepted(let subject): Self.event("accepted", [subject.member])
    case .refused(let frame):
      Self.event(
        "refused",
        [frame.subject.member, ("reason", .string(frame.reason)), ("field", .string(frame.field)), ("rule", .string(frame.rule))])
    case .linked(let frame):
      Self.event(
        "linked", [("request", .string(frame.request)), ("url", .string(frame.link.url)), ("expires", .integer(frame.link.expires))])
    case .gap(let gap):
      Self.event("gap", [("channel", gap.channel.map { .string($0.text) }), ("from", .string(gap.from)), ("to", .string(gap.to))])
    case .goaway(let goaway):
      Self.event(
        "goaway",
        [("reconnectAfterMs", goaway.reconnectAfterMs.map { .integer(Int64($0)) } ?? .null), ("reason", .string(goaway.reason))])
    case .badFrame(let error):
      Self.event("badFrame", [("frame", .string(error.frame)), ("field", .string(error.field)), ("rule", .string(error.rule))])
    case .unregistered: Self.event("unregistered", [])
    case .failed(let error): Self.event("failed", [("code", .string(error.code.rawValue)), ("message", .string(error.description))])
    }
  }

  /// An event's object. Members without a value are left out.
  static func event(_ name: String, _ members: [(String, JSONValue?)]) -> JSONValue {
    .object(
      [.init(key: "event", value: .string(name))]
        + members.compactMap { member in member.1.map { .init(key: member.0, value: $0) } })
  }
}

extension DeliveredNotification {
  /// The members of a notification in events and lists.
  var members: [(String, JSONValue?)] {
    func text(_ value: String) -> JSONValue? { value.isEmpty ? nil : .string(value) }
    return [
      ("id", .string(id)), ("identifier", .string(identifier.text)), ("revision", .string(frame.revision)),
      ("delivery", Int64(exactly: frame.delivery).map { .integer($0) }), ("title", text(content.title)),
      ("subtitle", text(content.subtitle)),
      ("body", text(content.body)), ("badge", content.badge.map { .integer(Int64($0)) }), ("sound", content.sound.map { .string($0.name) }),
      ("category", content.categoryIdentifier.map { .string($0.text) }),
      ("threadIdentifier", content.threadIdentifier.map { .string($0.text) }),
      ("pushType", .string(frame.pushType)), ("priority", .integer(Int64(frame.priority))), ("expiration", .integer(frame.expiration)),
      ("traceparent", frame.traceparent.map { .string($0) }), ("presentation", .array(presentation.names.map { .string($0) })),
      ("at", .integer(takenAt)), ("payload", content.payload),
      ("local", isLocal ? true : nil), ("attachments", attachments.isEmpty ? nil : .array(attachments.map(\.object))),
    ]
  }
}

extension NotificationPreview {
  /// The texts, without the empty ones.
  var object: JSONValue {
    .object(
      [("title", title), ("subtitle", subtitle), ("body", body)].filter { !$0.1.isEmpty }.map { .init(key: $0.0, value: .string($0.1)) })
  }
}

extension Panel {
  /// The members of a panel in events.
  var members: [(String, JSONValue?)] {
    [
      ("identifier", .string(identifier.text)), ("title", .string(title)), ("showsDefaultContent", .bool(showsDefaultContent)),
      ("lines", .array(lines.map { .string($0.text) })), ("controls", .array(controls.map(\.object))),
      ("firstResponder", firstResponder.map { .string($0.text) }), ("initialSizeRatio", initialSizeRatio.map { .number("\($0)") }),
      ("preferredSize", preferredSize.map { ["width": .number("\($0.width)"), "height": .number("\($0.height)")] }),
      ("actions", .array(actions.map { .string($0.identifier.text) })), ("mediaPlays", mediaButton.map { .bool($0.isPlaying) }),
    ]
  }
}

extension PanelControl {
  fileprivate var object: JSONValue {
    let named: [JSONValue.Member] = [.init(key: "identifier", value: .string(identifier.text)), .init(key: "title", value: .string(title))]
    guard case .textField(let placeholder, let buttonTitle) = kind else { return .object(named) }
    return .object(
      named + [.init(key: "placeholder", value: .string(placeholder)), .init(key: "buttonTitle", value: .string(buttonTitle))])
  }
}

extension FrameSubject {
  fileprivate var member: (String, JSONValue?) {
    switch self {
    case .response(let id): ("response", .string(id))
    case .request(let id): ("request", .string(id))
    }
  }
}
