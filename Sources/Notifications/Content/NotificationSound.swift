internal import JSON

/// The sound of a notification, from the member `sound` of the payload.
public struct NotificationSound: Sendable, Equatable, ExpressibleByStringLiteral {
  /// The name of the system's default sound.
  public static let defaultName = "default"

  /// The name of the file; ``defaultName`` for the system's sound.
  public let name: String
  /// Whether it plays even on a muted device.
  public let isCritical: Bool
  /// The volume of a critical sound, from 0 to 1; `nil` for the device's choice.
  public let volume: Double?

  /// Creates a sound; without arguments the system's.
  public init(name: String = defaultName, isCritical: Bool = false, volume: Double? = nil) {
    (self.name, self.isCritical, self.volume) = (name, isCritical, volume)
  }

  /// Creates the sound of a name.
  public init(stringLiteral name: String) { self.init(name: name) }

  /// Reads the value of `sound`: a name or an object; `nil` for anything else.
  ///
  /// The object has `name`, `critical` and `volume`.
  init?(_ value: JSONValue) {
    switch value {
    case .string(let name): self.init(name: name)
    case .object:
      self.init(
        name: value["name"]?.stringValue ?? Self.defaultName, isCritical: value["critical"]?.integerValue == 1,
        volume: value["volume"]?.doubleValue)
    default: return nil
    }
  }
}
