public import JSON
public import Notifications

/// An attachment of a notification for service extensions: a file of the media store, or a URL that a later extension (`attach`) must
/// fetch. A remaining URL goes to no device.
public struct ContentAttachment: Sendable, Equatable {
  /// The place of the file.
  public enum Source: Sendable, Equatable {
    /// It must be fetched from there.
    case url(String)
    /// It is in the media store.
    case stored(Media)
  }

  /// The longest URL, in bytes.
  public static var urlBytes: Int { 2_048 }

  /// Its name for the application, unique in its notification.
  public var identifier: Name
  /// The place of the file.
  public var source: Source
  /// How it is shown.
  public var options: AttachmentOptions

  /// An attachment.
  public init(identifier: Name, _ source: Source, options: AttachmentOptions = AttachmentOptions()) {
    (self.identifier, self.source, self.options) = (identifier, source, options)
  }

  /// Makes an attachment that must be fetched.
  public init(identifier: Name, url: String, options: AttachmentOptions = AttachmentOptions()) {
    self.init(identifier: identifier, .url(url), options: options)
  }

  /// Makes one from a device's attachment.
  init(_ attachment: NotificationAttachment) {
    self.init(identifier: attachment.identifier, .stored(attachment.media), options: attachment.options)
  }

  /// The device's form; nil if it is still a URL.
  public var attachment: NotificationAttachment? {
    guard case .stored(let media) = source else { return nil }
    return NotificationAttachment(identifier: identifier, media: media, options: options)
  }
}

extension ContentAttachment {
  /// Throws if a list of them breaks a rule.
  static func check(_ attachments: [ContentAttachment]) throws(ExtensionFailure) {
    guard attachments.count <= NotificationAttachment.maximum else {
      throw ExtensionFailure(
        "the result has \(attachments.count) attachments; a notification has at most \(NotificationAttachment.maximum)")
    }
    var identifiers: Set<Name> = []
    for attachment in attachments {
      guard NotificationAttachment.isIdentifier(attachment.identifier) else {
        throw ExtensionFailure(
          "an attachment's identifier is text of 1 to \(NotificationAttachment.identifierBytes) bytes without control characters")
      }
      guard identifiers.insert(attachment.identifier).inserted else {
        throw ExtensionFailure("the attachments of a notification have different identifiers")
      }
      if case .url(let url) = attachment.source, !(1...urlBytes).contains(url.utf8.count) {
        throw ExtensionFailure("an attachment's URL has 1 to \(urlBytes) bytes")
      }
      guard (attachment.options.typeHint?.utf8.count ?? 0) <= AttachmentOptions.typeHintBytes else {
        throw ExtensionFailure("an attachment's typeHint has at most \(AttachmentOptions.typeHintBytes) bytes")
      }
    }
  }

  /// As a JSON object: `identifier` and `options`, with either `url`, or `hash`, `type` and `size`.
  public var object: JSONValue {
    switch source {
    case .url(let url):
      var object: JSONValue = .object(["identifier": identifier, "url": url])
      if options != AttachmentOptions() { object.set("options", options.object) }
      return object
    case .stored(let media): return NotificationAttachment(identifier: identifier, media: media, options: options).object
    }
  }

  /// Reads such an object.
  ///
  /// - Parameter path: its place, for errors.
  init(_ value: JSONValue, path: String) throws(FieldError) {
    guard let url = value["url"] else {
      self.init(try NotificationAttachment(value, path: path))
      return
    }
    guard let identifier = value["identifier"]?.nameValue, let url = url.stringValue else {
      throw FieldError(field: path, rule: "An attachment has identifier and url, which are texts.")
    }
    self.init(identifier: identifier, .url(url), options: try AttachmentOptions(value["options"], path: path + ".options"))
  }

  /// Reads a list of them.
  static func list(_ value: JSONValue) throws(FieldError) -> [ContentAttachment] {
    guard let elements = value.elements, elements.count <= NotificationAttachment.maximum else {
      throw FieldError(field: "attachments", rule: "This must be a list of at most \(NotificationAttachment.maximum) objects.")
    }
    var list: [ContentAttachment] = []
    for (index, element) in elements.enumerated() { list.append(try ContentAttachment(element, path: "attachments[\(index)]")) }
    return list
  }
}
