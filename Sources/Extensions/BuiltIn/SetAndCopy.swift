public import JSON
import Notifications

/// The built-in extension `set-and-copy`: sets members of the payload, copies them, and puts a text before them, in this order.
public struct SetAndCopy: ImmediateExtension {
  /// One change.
  public enum Change: Sendable, Equatable {
    /// The member gets this value.
    case set(JSONValue)
    /// The member gets the value of another one. A missing one changes nothing. A number or a boolean becomes a text if the member is a
    /// text of `aps`.
    case copy(from: JSONPointer)
    /// The text of the member begins with this one. Another value stays unchanged.
    case prefix(String)
  }

  private let changes: [(place: JSONPointer, change: Change)]

  /// The changes, in their order.
  public init(_ changes: [(place: JSONPointer, change: Change)]) { self.changes = changes }

  /// See ``ImmediateExtension/change(_:of:)``. It fails if a place is impossible, in a text or in an array. Then nothing is changed.
  public func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure? {
    let given = content
    for (place, change) in changes {
      guard let value = Self.value(of: change, at: place, in: content.payload) else { continue }
      if case .string? = content.payload["aps"]?["alert"], place.tokens.starts(with: ["aps", "alert"]), place.tokens.count > 2 {
        content.body = content.body
      }
      guard content.payload.set(value, at: place) else {
        content = given
        return ExtensionFailure("the payload has no place \(place)")
      }
    }
    return nil
  }

  private static func value(of change: Change, at place: JSONPointer, in payload: JSONValue) -> JSONValue? {
    switch change {
    case .set(let value): return value
    case .copy(let source):
      let value = payload[source]
      guard isText(place) else { return value }
      switch value {
      case .number(let number): return .string(number)
      case .bool(let bool): return .string(bool ? "true" : "false")
      default: return value
      }
    case .prefix(let prefix): return payload[text: place].map { .string(prefix + $0) }
    }
  }

  /// Whether a member of `aps` is a text.
  private static func isText(_ place: JSONPointer) -> Bool {
    guard place.tokens.first == "aps" else { return false }
    return switch place.tokens.dropFirst() {
    case ["alert", "title"], ["alert", "subtitle"], ["alert", "body"], ["thread-id"], ["category"], ["target-content-id"]: true
    default: false
    }
  }
}

extension JSONValue {
  /// The text at a place of a payload. The text of an alert that is a text is its body.
  fileprivate subscript(text place: JSONPointer) -> String? {
    if place.tokens == ["aps", "alert", "body"], let body = self["aps"]?["alert"]?.stringValue { return body }
    return self[place]?.stringValue
  }
}

// MARK: Settings

extension SetAndCopy {
  /// The maximum number of changes of one extension.
  static let maximumChanges = 64

  /// Reads the members `set`, `copy` and `prefix`, each an object whose names are places (JSON pointers).
  init(_ settings: inout SettingsObject) throws(FieldError) {
    var changes: [(place: JSONPointer, change: Change)] = []
    for (name, rule, make) in Self.kinds {
      for entry in try settings.entries(name) {
        let path = "\(name)[\(JSONValue.string(entry.key).text)]"
        guard let place = JSONPointer(entry.key), !place.tokens.isEmpty else {
          throw settings.wrong(path, "A place is a JSON pointer like /aps/alert/title.")
        }
        guard let change = make(entry.value) else { throw settings.wrong(path, rule) }
        changes.append((place, change))
      }
    }
    guard (1...Self.maximumChanges).contains(changes.count) else {
      throw settings.wrong("set", "The members set, copy and prefix have 1 to \(Self.maximumChanges) changes together.")
    }
    self.init(changes)
  }

  private static let kinds: [(name: String, rule: String, make: @Sendable (JSONValue) -> Change?)] = [
    ("set", "", { .set($0) }),
    (
      "copy", "The source of a copy is a JSON pointer like /order/id.", { $0.stringValue.flatMap(JSONPointer.init).map { .copy(from: $0) } }
    ),
    (
      "prefix", "A prefix is a text of 1 to 1024 bytes.",
      { value in value.stringValue.flatMap { (1...1_024).contains($0.utf8.count) ? .prefix($0) : nil } }
    ),
  ]
}
