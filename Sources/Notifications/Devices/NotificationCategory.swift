public import JSON

/// A kind of notification for which the application has actions.
public struct NotificationCategory: Sendable, Equatable, JSONWritable {
  /// An option of the whole category.
  public enum Option: String, Sendable, CaseIterable {
    /// An explicit dismissal is reported.
    case customDismissAction
    /// It may be shown in a car.
    case allowInCarPlay
    /// The title is shown while previews are hidden.
    case hiddenPreviewsShowTitle
    /// The subtitle is shown while previews are hidden.
    case hiddenPreviewsShowSubtitle
  }

  /// The maximum number of categories of one application.
  public static var maximum: Int { 100 }
  /// The maximum number of actions of a category.
  public static var maximumActions: Int { 10 }
  /// The longest identifier of a category or an action, in bytes.
  public static var identifierBytes: Int { 128 }
  /// The longest title, placeholder or button title, in bytes.
  public static var titleBytes: Int { 256 }

  /// The identifier in `aps.category`.
  public var identifier: Name
  /// The options of the whole category.
  public var options: Set<Option>
  /// The actions, in the order of display.
  public var actions: [NotificationAction]
  /// The first two actions, for where space is short.
  public var shortActions: ArraySlice<NotificationAction> { actions.prefix(2) }
  /// The intents with which assistants may use it.
  public var intentIdentifiers: [Name]
  /// The text in place of a hidden preview.
  public var hiddenPreviewsBodyPlaceholder: String?

  /// Creates a category.
  public init(
    identifier: Name, options: Set<Option> = [], actions: [NotificationAction] = [], intentIdentifiers: [Name] = [],
    hiddenPreviewsBodyPlaceholder: String? = nil
  ) {
    (self.identifier, self.options, self.actions) = (identifier, options, actions)
    (self.intentIdentifiers, self.hiddenPreviewsBodyPlaceholder) = (intentIdentifiers, hiddenPreviewsBodyPlaceholder)
  }

  init(_ value: JSONValue, path: String) throws(FieldError) {
    let reader = try ObjectReader(value, path: path)
    identifier = try reader.requiredName("identifier", longest: Self.identifierBytes)
    options = Set(try reader.words("options").compactMap(Option.init(rawValue:)))
    actions = []
    for (value, path) in try reader.elements("actions", atMost: Self.maximumActions) ?? [] {
      let action = try NotificationAction(value, path: path)
      guard !actions.contains(where: { $0.identifier == action.identifier }) else {
        throw FieldError(field: path + ".identifier", rule: "The identifiers of a category's actions differ.")
      }
      actions.append(action)
    }
    let intents = try reader.words("intentIdentifiers")
    guard intents.allSatisfy({ ObjectReader.isPlain($0, longest: Self.identifierBytes) }) else {
      throw reader.error("intentIdentifiers", "An identifier is text of 1 to \(Self.identifierBytes) bytes without control characters.")
    }
    intentIdentifiers = intents.map { Name($0) }
    hiddenPreviewsBodyPlaceholder = try reader.text("hiddenPreviewsBodyPlaceholder", longest: Self.titleBytes)
  }

  /// Reads an array of categories with different identifiers.
  static func list(_ reader: ObjectReader) throws(FieldError) -> [NotificationCategory]? {
    guard let elements = try reader.elements("categories", atMost: maximum) else { return nil }
    var categories: [NotificationCategory] = []
    var identifiers: Set<Name> = []
    for (value, path) in elements {
      let category = try NotificationCategory(value, path: path)
      guard identifiers.insert(category.identifier).inserted else {
        throw FieldError(field: path + ".identifier", rule: "The identifiers of an application's categories differ.")
      }
      categories.append(category)
    }
    return categories
  }

  /// Appends the category as a JSON object.
  public func write(to json: inout JSONWriter) {
    json.openObject()
    json.member("identifier", identifier)
    json.member("options", options.isEmpty ? nil : Option.allCases.filter(options.contains).map(\.rawValue))
    json.member("actions", actions)
    json.member("intentIdentifiers", intentIdentifiers.isEmpty ? nil : intentIdentifiers.map(\.text))
    if let hiddenPreviewsBodyPlaceholder { json.member("hiddenPreviewsBodyPlaceholder", hiddenPreviewsBodyPlaceholder) }
    json.closeObject()
  }
}
