import JSON
import Notifications

extension Localize {
  /// A text of an alert, and the members that localise it.
  private struct AlertText {
    let text: String
    let key: String
    let arguments: String

    static let all = [
      AlertText(text: "title", key: "title-loc-key", arguments: "title-loc-args"),
      AlertText(text: "subtitle", key: "subtitle-loc-key", arguments: "subtitle-loc-args"),
      AlertText(text: "body", key: "loc-key", arguments: "loc-args"),
    ]
  }

  /// Localises an alert: `title`, `subtitle` and `body` become the texts of their keys, and keys and arguments are removed.
  ///
  /// A key that no table has stays with its arguments and the text beside it, since the application on the device may have the key. A text
  /// beside a known key was for readers without the key, and is replaced. If this throws, the alert is unchanged.
  ///
  /// - Parameters:
  ///   - alert: `aps.alert`; one that is not an object has nothing to localise.
  ///   - locale: the device's.
  ///   - limit: the most bytes of a text.
  /// - Returns: whether anything has changed.
  func localize(_ alert: inout JSONValue, locale: String?, limit: Int) throws(FieldError) -> Bool {
    guard case .object(var members) = alert else { return false }
    var isChanged = false
    for names in AlertText.all {
      guard let key = alert[names.key]?.stringValue, let format = format(key, locale: locale) else { continue }
      let arguments = try Self.arguments(of: alert, names.arguments)
      let filled = try format.filled(with: arguments, limit: limit, field: "aps.alert.\(names.key)")
      // The text takes the place of the first of its members.
      let place = members.firstIndex { $0.key == names.text || $0.key == names.key } ?? members.endIndex
      let former = members[..<place].filter { $0.key != names.arguments }
      let rest = members[place...].filter { $0.key != names.text && $0.key != names.key && $0.key != names.arguments }
      members = former + [JSONValue.Member(key: names.text, value: .string(filled))] + rest
      isChanged = true
    }
    if isChanged { alert = .object(members) }
    return isChanged
  }

  private static func arguments(of alert: JSONValue, _ name: String) throws(FieldError) -> [String] {
    var arguments: [String] = []
    guard let value = alert[name] else { return arguments }
    guard let elements = value.elements else { throw FieldError(field: "aps.alert.\(name)", rule: "This member of alert is an array.") }
    for (index, element) in elements.enumerated() {
      guard let text = element.stringValue else { throw FieldError(field: "aps.alert.\(name)[\(index)]", rule: "An argument is a string.") }
      arguments.append(text)
    }
    return arguments
  }
}
