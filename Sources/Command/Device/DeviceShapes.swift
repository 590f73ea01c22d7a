import JSON
import Notifications

/// Reads objects of the device protocol from a person or a script, by the protocol's own rules.
enum DeviceShapes {
  /// Reads the categories of an array.
  static func categories(_ value: JSONValue) throws(FieldError) -> [NotificationCategory] {
    try registration(["categories": value]).categories
  }

  /// Reads an authorization.
  static func authorization(_ value: JSONValue) throws(FieldError) -> Authorization {
    guard let authorization = try registration(["authorization": value]).authorization else {
      throw FieldError(field: "authorization", rule: "This is an object.")
    }
    return authorization
  }

  /// A dummy registration with these members, which runs the protocol's checks.
  private static func registration(_ members: [String: JSONValue]) throws(FieldError) -> Registration {
    let required: JSONValue = ["device": .string(String(repeating: "0", count: DeviceToken.shortest)), "application": "a", "since": 0]
    let text = required.appending(contentsOf: .object(members.map { .init($0.key, $0.value) })).text
    return try text.withBytes { bytes throws(FieldError) in try Registration(json: bytes) }
  }
}
