public import JSON

/// An action on a notification, other than opening or dismissing it.
public struct NotificationAction: Sendable, Equatable, JSONWritable {
  /// How the device performs the action.
  public enum Option: String, Sendable, CaseIterable {
    /// Held until the device is unlocked.
    case authenticationRequired
    /// Shown as destructive.
    case destructive
    /// Brings the application to the front.
    case foreground
  }

  /// The text field of an action that takes text.
  public struct TextInput: Sendable, Equatable {
    /// The title of the button beside the field.
    public var buttonTitle: String?
    /// The text in the empty field.
    public var placeholder: String?

    /// Creates a text field.
    public init(buttonTitle: String? = nil, placeholder: String? = nil) {
      (self.buttonTitle, self.placeholder) = (buttonTitle, placeholder)
    }
  }

  /// Apple's identifier for opening the notification.
  public static var defaultIdentifier: Name { "com.apple.UNNotificationDefaultActionIdentifier" }
  /// Apple's identifier for dismissing the notification explicitly.
  public static var dismissIdentifier: Name { "com.apple.UNNotificationDismissActionIdentifier" }

  /// The identifier in responses.
  public var identifier: Name
  /// The title that the person reads.
  public var title: String
  /// How the device performs the action.
  public var options: Set<Option>
  /// The text field; nil if the action takes no text.
  public var textInput: TextInput?

  /// Creates an action.
  public init(identifier: Name, title: String, options: Set<Option> = [], textInput: TextInput? = nil) {
    (self.identifier, self.title, self.options, self.textInput) = (identifier, title, options, textInput)
  }

  init(_ value: JSONValue, path: String) throws(FieldError) {
    let reader = try ObjectReader(value, path: path)
    identifier = try reader.requiredName("identifier", longest: NotificationCategory.identifierBytes)
    guard identifier != Self.defaultIdentifier, identifier != Self.dismissIdentifier else {
      throw reader.error("identifier", "This identifier is kept for opening and dismissing.")
    }
    title = try reader.requiredText("title", longest: NotificationCategory.titleBytes)
    options = Set(try reader.words("options").compactMap(Option.init(rawValue:)))
    textInput = try reader["textInput"].map { value throws(FieldError) in
      let field = try ObjectReader(value, path: reader.path + "textInput")
      return TextInput(
        buttonTitle: try field.text("buttonTitle", longest: NotificationCategory.titleBytes, isFree: true),
        placeholder: try field.text("placeholder", longest: NotificationCategory.titleBytes, isFree: true))
    }
  }

  /// Appends the action as a JSON object.
  public func write(to json: inout JSONWriter) {
    json.openObject()
    json.member("identifier", identifier)
    json.member("title", title)
    json.member("options", options.isEmpty ? nil : Option.allCases.filter(options.contains).map(\.rawValue))
    if let textInput {
      json.key("textInput")
      json.openObject()
      if let buttonTitle = textInput.buttonTitle { json.member("buttonTitle", buttonTitle) }
      if let placeholder = textInput.placeholder { json.member("placeholder", placeholder) }
      json.closeObject()
    }
    json.closeObject()
  }
}
