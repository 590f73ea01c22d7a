internal import JSON

/// The sound of a notification, as `sound` of the payload names it.
public struct NotificationSound: Sendable, Equatable {
  /// The name of the system's own sound.
  public static let defaultName = "default"

  /// The file's name; ``defaultName`` for the system's own.
  public let name: String
  /// Whether it plays on a muted device too.
  public let isCritical: Bool
  /// How loud a critical sound is, from 0 to 1; `nil` leaves it to the device.
  public let volume: Double?

  /// A sound from its parts; the system's own by default.
  public init(name: String = defaultName, isCritical: Bool = false, volume: Double? = nil) {
    (self.name, self.isCritical, self.volume) = (name, isCritical, volume)
  }

  /// Reads the value of `sound`: a name, or an object with `name`, `critical` and `volume`; `nil` for anything else.
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
