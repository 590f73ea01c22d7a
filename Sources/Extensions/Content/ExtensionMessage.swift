import JSON
import Notifications

/// The JSON of a notification for an extension outside the worker, and its answer: the body of a webhook, or a child's line.
enum ExtensionMessage {
  /// The notification as a JSON object.
  static func object(_ request: ExtensionRequest, _ content: MutableContent) -> JSONValue {
    .object(present: [
      "id": "\(request.id)", "identifier": request.identifier, "application": request.application, "extension": request.extensionName,
      "expiration": request.expiration, "payload": content.payload, "locale": request.locale, "device": request.device,
      "traceparent": request.traceparent, "variant": request.variant,
      "attachments": content.attachments.isEmpty ? nil : content.attachments.map(\.object),
    ])
  }

  /// Reads the notification of such an object; nil if it is invalid.
  static func notification(_ object: JSONValue) -> (request: ExtensionRequest, content: MutableContent)? {
    guard let id = object["id"]?.stringValue.flatMap({ NotificationID($0) }), let identifier = object["identifier"]?.nameValue,
      let application = object["application"]?.nameValue, let name = object["extension"]?.stringValue,
      let expiration = object["expiration"]?.integerValue, let payload = object["payload"], payload.members != nil
    else { return nil }
    var request = ExtensionRequest(
      id: id, identifier: identifier, application: application, expiration: expiration, locale: object["locale"]?.stringValue,
      traceparent: object["traceparent"]?.stringValue)
    (request.device, request.variant) = (object["device"]?.stringValue, object["variant"]?.nameValue)
    let attachments = object["attachments"].flatMap { try? ContentAttachment.list($0) } ?? []
    return (request.named(name), MutableContent(payload: payload, attachments: attachments))
  }

  /// The longest answer, in bytes: a payload in which every character is escaped.
  static let longestAnswer = 128 << 10

  /// The answer of a child that runs an own extension.
  static func answer(_ content: MutableContent) -> JSONValue {
    .object(["payload": content.payload, "attachments": content.attachments.map(\.object)])
  }

  /// Reads the content of an answer: an object with `payload` or `patch` (RFC 7396), either an object, with `attachments`, or with both.
  ///
  /// - Throws: which rule it breaks.
  static func content(_ answer: JSONValue?, of given: MutableContent) throws(ExtensionFailure) -> MutableContent {
    var content = given
    var keys: Set<Name> = []
    for member in answer?.members ?? [] {
      keys.insert(Name(member.key))
      switch member.key {
      case "payload" where member.value.members != nil: content.payload = member.value
      case "patch" where member.value.members != nil: content.merge(member.value)
      case "attachments": content.attachments = try attachments(member.value, of: given)
      default: throw notAnAnswer
      }
    }
    guard !keys.isEmpty, keys.count == answer?.members?.count, !keys.isSuperset(of: ["payload", "patch"]) else {
      throw notAnAnswer
    }
    return content
  }

  private static let notAnAnswer = ExtensionFailure(
    "it answers with something else than a JSON object that has payload or patch, an object, or attachments, a list")

  /// Files of the media store may only be those that it was given. A new file needs a URL.
  private static func attachments(_ value: JSONValue, of given: MutableContent) throws(ExtensionFailure) -> [ContentAttachment] {
    let list: [ContentAttachment]
    do throws(FieldError) { list = try ContentAttachment.list(value) } catch {
      throw ExtensionFailure("it answers with attachments that break a rule: \(error)")
    }
    for case .stored(let media) in list.map(\.source) where !given.attachments.contains(where: { $0.source == .stored(media) }) {
      throw ExtensionFailure("it answers with an attachment by a hash that it was not given: what is to be fetched has a url")
    }
    return list
  }
}
