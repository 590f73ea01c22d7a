import JSON
import Notifications

/// What an extension outside the worker is told of a notification, and what it answers: a webhook in a request, a child in a line.
enum ExtensionMessage {
  /// The notification as a JSON object.
  static func object(_ request: ExtensionRequest, _ content: MutableContent) -> JSONValue {
    [
      "id": .string("\(request.id)"), "identifier": .string(request.identifier), "application": .string(request.application),
      "extension": .string(request.extensionName), "expiration": .integer(request.expiration), "payload": content.payload,
    ]
  }

  /// The notification of such an object; nil where it is none.
  static func notification(_ object: JSONValue) -> (request: ExtensionRequest, content: MutableContent)? {
    guard let id = object["id"]?.stringValue.flatMap({ NotificationID($0) }), let identifier = object["identifier"]?.stringValue,
      let application = object["application"]?.stringValue, let name = object["extension"]?.stringValue,
      let expiration = object["expiration"]?.integerValue, let payload = object["payload"], payload.members != nil
    else { return nil }
    let request = ExtensionRequest(id: id, identifier: identifier, application: application, expiration: expiration)
    return (request.named(name), MutableContent(payload: payload))
  }

  /// The longest answer, in bytes: a payload in which every character is escaped.
  static let longestAnswer = 128 << 10

  /// The content that an answer leaves: an object with `payload` or `patch` (RFC 7396), either an object.
  ///
  /// - Throws: which rule it breaks.
  static func content(_ answer: JSONValue?, of given: MutableContent) throws(ExtensionFailure) -> MutableContent {
    guard let members = answer?.members, members.count == 1, let member = members.first, member.value.members != nil else {
      throw ExtensionFailure("it answers with something else than a JSON object that has payload or patch, an object")
    }
    switch member.key {
    case "payload": return MutableContent(payload: member.value)
    case "patch":
      var content = given
      content.payload.merge(member.value)
      return content
    default: throw ExtensionFailure("it answers with a JSON object that has neither payload nor patch")
    }
  }
}
