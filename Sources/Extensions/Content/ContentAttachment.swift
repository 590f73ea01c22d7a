public import JSON
public import Notifications

/// Something that a notification comes with, as a service extension sees it: a file of the media store, or a URL whose file is to be put
/// there by an extension behind it (`attach`). What is still a URL when all extensions are passed goes to no device.
public struct ContentAttachment: Sendable, Equatable {
  /// Where the file is.
  public enum Source: Sendable, Equatable {
    /// It is to be fetched from there.
    case url(String)
    /// It is in the media store.
    case stored(Media)
  }

  /// The longest URL, in bytes.
  public static var urlBytes: Int { 2_048 }

  /// What the application knows it by, unique in its notification.
  public var identifier: Name
  /// Where the file is.
  public var source: Source
  /// How it is shown.
  public var options: AttachmentOptions

  /// An attachment.
  public init(identifier: Name, _ source: Source, options: AttachmentOptions = AttachmentOptions()) {
    (self.identifier, self.source, self.options) = (identifier, source, options)
  }

  /// What is to be fetched from a URL.
  public init(identifier: Name, url: String, options: AttachmentOptions = AttachmentOptions()) {
    self.init(identifier: identifier, .url(url), options: options)
  }

  /// A file of the media store that a device is given.
  init(_ attachment: NotificationAttachment) {
    self.init(identifier: attachment.identifier, .stored(attachment.media), options: attachment.options)
  }

  /// It as a device is given it; nil where it is still a URL.
  public var attachment: NotificationAttachment? {
    guard case .stored(let media) = source else { return nil }
    return NotificationAttachment(identifier: identifier, media: media, options: options)
  }
}

extension ContentAttachment {
  /// Throws where a list of them breaks a rule.
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
      var object: JSONValue = ["identifier": .string(identifier.text), "url": .string(url)]
      if options != AttachmentOptions() { object.set("options", options.object) }
      return object
    case .stored(let media): return NotificationAttachment(identifier: identifier, media: media, options: options).object
    }
  }

  /// Reads such an object.
  ///
  /// - Parameter path: where it stands, for errors.
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
