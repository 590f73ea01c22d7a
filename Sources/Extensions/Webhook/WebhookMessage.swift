import HTTP
import JSON

/// What a webhook is sent of a notification, and what it answers.
enum WebhookMessage {
  /// The body of the request: one JSON object.
  static func body(_ request: ExtensionRequest, _ content: MutableContent) -> [UInt8] {
    let message: JSONValue = [
      "id": .string("\(request.id)"), "identifier": .string(request.identifier), "application": .string(request.application),
      "extension": .string(request.extensionName), "expiration": .integer(request.expiration), "payload": content.payload,
    ]
    var writer = JSONWriter(capacity: 1024)
    message.write(to: &writer)
    return writer.withUnsafeBytes { Array($0) }
  }

  /// What an answer may have at most, in bytes: a payload in which every character is escaped.
  static let longestAnswer = 128 << 10

  /// The content that an answer leaves.
  ///
  /// - Throws: which rule the answer breaks.
  static func content(_ answer: HTTPClientResponse, of given: MutableContent) throws(ExtensionFailure) -> MutableContent {
    if answer.status == .noContent { return given }
    guard answer.status == .ok else { throw ExtensionFailure("it answers with the status \(answer.status.rawValue)") }
    guard let value = answer.body.withUnsafeBytes({ try? JSONValue(parsing: $0) }), let members = value.members, members.count == 1,
      let member = members.first, member.value.members != nil
    else { throw ExtensionFailure("it answers with something else than a JSON object that has payload or patch, an object") }
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
