public import JSON

/// A link to a file of the media store, valid for a limited time.
public struct MediaLink: Sendable, Equatable {
  /// The URL, signed for one device.
  public var url: String
  /// The time at which the link expires, in seconds since 1970 by the cluster's clock.
  public var expires: Int64

  /// Creates a link.
  public init(url: String, expires: Int64) { (self.url, self.expires) = (url, expires) }

  /// The longest URL, in bytes.
  static var urlBytes: Int { 2_048 }

  /// Reads the members `url` and `expires`; nil without a `url`.
  init?(_ reader: ObjectReader) throws(FieldError) {
    guard let url = try reader.text("url", longest: Self.urlBytes) else { return nil }
    self.init(url: url, expires: try reader.requiredInteger("expires"))
  }
}

/// An attachment as a device gets it: with a link, if the cluster serves media.
public struct LinkedAttachment: Sendable, Equatable {
  /// The attachment.
  public var attachment: NotificationAttachment
  /// The link; nil if the cluster serves no media.
  public var link: MediaLink?

  /// Creates an attachment with its link.
  public init(_ attachment: NotificationAttachment, link: MediaLink?) { (self.attachment, self.link) = (attachment, link) }

  init(_ value: JSONValue, path: String) throws(FieldError) {
    attachment = try NotificationAttachment(value, path: path)
    link = try MediaLink(try ObjectReader(value, path: path))
  }

  /// The JSON object with the attachment's members, `url` and `expires`.
  public var object: JSONValue {
    attachment.object.appending(contentsOf: .object(present: ["url": link?.url, "expires": link?.expires]))
  }
}

/// The frame `link`: a device asks for a new link to an attachment.
public struct LinkFrame: Sendable, Equatable, JSONWritable {
  /// The file.
  public var hash: MediaHash
  /// The device's own id for the request.
  public var request: String

  /// Creates a request for a link.
  public init(hash: MediaHash, request: String) { (self.hash, self.request) = (hash, request) }

  init(_ reader: ObjectReader) throws(FieldError) {
    request = try reader.requiredText("request", longest: FrameLimits.idBytes)
    guard let hash = MediaHash(try reader.requiredText("hash", longest: MediaHash.textCount)) else {
      throw reader.error("hash", "This is a SHA-256: \(MediaHash.textCount) hexadecimal digits in lower case.")
    }
    self.hash = hash
  }

  /// Appends the frame.
  public func write(to json: inout JSONWriter) {
    json.openFrame("link")
    json.member("hash", hash.description)
    json.member("request", request)
    json.closeObject()
  }
}

/// The frame `linked`: the answer to `link`.
public struct LinkedFrame: Sendable, Equatable {
  /// The device's own id for its request.
  public var request: String
  /// The link.
  public var link: MediaLink

  /// Creates the answer.
  public init(request: String, link: MediaLink) { (self.request, self.link) = (request, link) }

  init(_ reader: ObjectReader) throws(FieldError) {
    request = try reader.requiredText("request", longest: FrameLimits.idBytes)
    link = try reader.required("url", try MediaLink(reader))
  }
}
