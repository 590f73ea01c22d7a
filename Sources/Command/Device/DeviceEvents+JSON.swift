import DeviceClient
import JSON
import Notifications

/// The events of a device as JSON, one object a line. They are frames of both directions, and their results.
extension DeviceEvent {
  /// The line.
  var json: JSONValue {
    switch self {
    case .frame(let direction, let text):
      .object(["frame": (try? JSONValue(parsing: text)) ?? .string(text), "direction": direction.rawValue])
    case .connected(let welcome, let url):
      Self.event(
        "connected",
        [
          "url": url, "session": welcome.session, "now": welcome.now, "window": welcome.window, "rememberSeconds": welcome.rememberSeconds,
        ])
    case .closed(let code, let reason, let wait):
      Self.event(
        "closed",
        [
          "code": Int(code), "name": CloseCode(rawValue: code)?.name.description, "reason": reason,
          "reconnectAfterMs": wait?.json ?? .null,
        ])
    case .unreachable(let reason, let wait): Self.event("unreachable", ["reason": reason, "reconnectAfterMs": wait?.json ?? .null])
    case .shown(let notification): Self.event("shown", notification.members)
    case .updated(let notification): Self.event("updated", notification.members)
    case .silent(let notification): Self.event("silent", notification.members)
    case .forwarded(let notification): Self.event("forwarded", notification.members)
    case .held(let notification): Self.event("held", notification.members)
    case .dropped(let delivery, let id, let identifiers, let reason):
      Self.event(
        "dropped", ["delivery": delivery.flatMap { Int64(exactly: $0) }, "id": id, "identifiers": identifiers, "reason": reason.rawValue])
    case .removed(let identifiers, let notifications):
      Self.event("removed", ["identifiers": identifiers, "wereListed": notifications.map(\.identifier)])
    case .attachmentMissing(let notification, let attachment, let failure):
      Self.event(
        "attachmentMissing",
        ["identifier": notification, "attachment": attachment, "reason": failure.reason.rawValue, "message": failure.description])
    case .extensionFailed(let notification, let reason):
      Self.event("extensionFailed", ["identifier": notification, "message": reason])
    case .activated(let identifier): Self.event("activated", ["identifier": identifier])
    case .unhandled(let notification): Self.event("unhandled", notification.members)
    // No instruction expands a notification.
    case .panel(let panel), .panelClosed(let panel): Self.event("panel", ["identifier": panel.identifier])
    case .accepted(let subject): Self.event("accepted", ["\(subject.member.name)": subject.member.id])
    case .refused(let frame):
      Self.event(
        "refused",
        ["\(frame.subject.member.name)": frame.subject.member.id, "reason": frame.reason, "field": frame.field, "rule": frame.rule])
    case .linked(let frame): Self.event("linked", ["request": frame.request, "url": frame.link.url, "expires": frame.link.expires])
    case .gap(let gap): Self.event("gap", ["from": gap.from, "to": gap.to])
    case .goaway(let goaway):
      Self.event("goaway", ["reconnectAfterMs": goaway.reconnectAfterMs?.json ?? .null, "reason": goaway.reason])
    case .badFrame(let error): Self.event("badFrame", ["frame": error.frame, "field": error.field, "rule": error.rule])
    case .unregistered: Self.event("unregistered", [:])
    case .failed(let error): Self.event("failed", ["code": error.code.rawValue, "message": error.description])
    }
  }

  /// An event's object. Members without a value are left out.
  static func event(_ name: String, _ members: JSONValue.Members) -> JSONValue {
    .object(["event": name]).appending(contentsOf: .object(present: members))
  }
}

extension DeliveredNotification {
  /// The members of a notification in events and lists.
  var members: JSONValue.Members {
    func text(_ value: String) -> String? { value.isEmpty ? nil : value }
    return [
      "id": id, "identifier": identifier, "revision": frame.revision, "delivery": Int64(exactly: frame.delivery),
      "title": text(content.title), "subtitle": text(content.subtitle), "body": text(content.body), "badge": content.badge,
      "sound": content.sound?.name, "category": content.categoryIdentifier, "threadIdentifier": content.threadIdentifier,
      "pushType": frame.pushType, "priority": frame.priority, "expiration": frame.expiration, "traceparent": frame.traceparent,
      "presentation": presentation.names, "at": takenAt, "payload": content.payload, "local": isLocal ? true : nil,
      "trigger": frame.trigger.flatMap { try? JSONValue(parsing: $0) },
      "attachments": attachments.isEmpty ? nil : attachments.map(\.object),
    ]
  }
}
