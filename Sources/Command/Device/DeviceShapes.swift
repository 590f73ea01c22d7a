import JSON
import Notifications

/// Reads the shapes of the device protocol that a person or a script gives, by the protocol's own rules.
enum DeviceShapes {
  /// The categories of an array.
  static func categories(_ value: JSONValue) throws(FieldError) -> [NotificationCategory] {
    try registration(["categories": value]).categories
  }

  /// What the person lets notifications do.
  static func authorization(_ value: JSONValue) throws(FieldError) -> Authorization {
    guard let authorization = try registration(["authorization": value]).authorization else {
      throw FieldError(field: "authorization", rule: "This is an object.")
    }
    return authorization
  }

  /// A registration of nobody that has the members, for the checks that come with it.
  private static func registration(_ members: [String: JSONValue]) throws(FieldError) -> Registration {
    var object: [JSONValue.Member] = [
      .init(key: "device", value: .string(String(repeating: "0", count: DeviceToken.shortest))), .init(key: "application", value: "a"),
      .init(key: "since", value: 0),
    ]
    object += members.map { .init(key: $0.key, value: $0.value) }
    var text = JSONValue.object(object).text
    let result = text.withUTF8 { bytes -> Result<Registration, FieldError> in
      do throws(FieldError) {
        return .success(try Registration(json: UnsafeRawBufferPointer(bytes)))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }
}
