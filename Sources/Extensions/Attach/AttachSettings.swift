import HTTP
import JSON
import Notifications

/// The settings of `attach` in the extensions' file.
struct AttachSettings: Sendable {
  /// A place of the payload that may have a URL.
  struct Place: Sendable {
    let pointer: JSONPointer
    let identifier: Name
    let options: AttachmentOptions
  }

  /// The places of URLs.
  let places: [Place]
  /// The time limit of a download, in milliseconds.
  let timeoutMilliseconds: Int
  /// How long a fetched file is used again, in milliseconds.
  let reuseMilliseconds: Int
  let configuration: HTTPClientConfiguration

  /// The most redirects; each is judged like the first URL.
  static let redirects = 3

  /// Reads the members `attachments`, `hosts`, `timeout`, `reuse`, `networks`, `plaintext` and `certificates`.
  init(_ settings: inout SettingsObject, concurrency: Int) throws(FieldError) {
    places = try Self.places(&settings)
    let hosts = try settings.texts("hosts")
    guard !hosts.isEmpty else { throw settings.wrong("hosts", "This member is required: a list of the hosts that media come from.") }
    let rule: HTTPHostRule
    do throws(HTTPTextFailure) { rule = try HTTPHostRule(hosts) } catch { throw settings.wrong("hosts", error.description) }
    timeoutMilliseconds = Int(try settings.integer("timeout", in: 1...Int64(CallBudget.longestMilliseconds)) ?? 8_000)
    reuseMilliseconds = Int(try settings.integer("reuse", in: 0...86_400) ?? 300) * 1000
    configuration = try HTTPClientConfiguration(
      &settings, hosts: rule, plaintext: [.https, .http], connections: (all: 64, perHost: 16),
      inFlight: concurrency * NotificationAttachment.maximum)
    do throws(HTTPClientError) { try configuration.checkHosts() } catch { throw settings.wrong("hosts", error.settingsRule) }
  }

  private static func places(_ settings: inout SettingsObject) throws(FieldError) -> [Place] {
    guard let value = settings.take("attachments") else { return [] }
    guard let elements = value.elements, (1...NotificationAttachment.maximum).contains(elements.count) else {
      throw settings.wrong("attachments", "This must be a list of 1 to \(NotificationAttachment.maximum) objects.")
    }
    var places: [Place] = []
    for (index, element) in elements.enumerated() {
      var object = try settings.object(element, at: "attachments[\(index)]")
      let text = try object.requiredText("url", longest: 1_024)
      guard let pointer = JSONPointer(text), let last = pointer.tokens.last else {
        throw object.wrong("url", "The place of a URL in the payload is a JSON pointer like /my-attachment.")
      }
      let identifier = Name(try object.text("identifier", longest: NotificationAttachment.identifierBytes) ?? last)
      guard NotificationAttachment.isIdentifier(identifier) else {
        throw object.wrong(
          "identifier", "An identifier is text of 1 to \(NotificationAttachment.identifierBytes) bytes without control characters.")
      }
      guard !places.contains(where: { $0.identifier == identifier }) else {
        throw object.wrong("identifier", "The attachments of a notification have different identifiers.")
      }
      let options = try AttachmentOptions(object.take("options"), path: object.place("options"))
      try object.finish()
      places.append(Place(pointer: pointer, identifier: identifier, options: options))
    }
    return places
  }
}
