public import JSON

/// A file in the cluster's media store.
public struct Media: Sendable, Hashable {
  /// The hash of the content.
  public var hash: MediaHash
  /// The type, by the content.
  public var type: MediaType
  /// The size in bytes.
  public var size: Int

  /// Creates a file from its parts.
  public init(hash: MediaHash, type: MediaType, size: Int) { (self.hash, self.type, self.size) = (hash, type, size) }
}

/// A file that comes with a notification: an image, audio or a video (`UNNotificationAttachment`).
public struct NotificationAttachment: Sendable, Equatable {
  /// The maximum number of attachments of a notification.
  public static var maximum: Int { 10 }
  /// The longest identifier, in bytes.
  public static var identifierBytes: Int { 64 }

  /// The application's identifier of the attachment, unique in the notification.
  public var identifier: Name
  /// The file.
  public var media: Media
  /// The options of its display.
  public var options: AttachmentOptions

  /// Creates an attachment from its parts.
  public init(identifier: Name, media: Media, options: AttachmentOptions = AttachmentOptions()) {
    (self.identifier, self.media, self.options) = (identifier, media, options)
  }

  /// Whether a name may be an identifier.
  public static func isIdentifier(_ name: Name) -> Bool { ObjectReader.isPlain(name.text, longest: identifierBytes) }

  /// Reads the members `identifier`, `hash`, `type`, `size` and `options`.
  ///
  /// - Parameter path: the path of the object, for errors.
  public init(_ value: JSONValue, path: String) throws(FieldError) {
    let reader = try ObjectReader(value, path: path)
    identifier = try reader.requiredName("identifier", longest: Self.identifierBytes)
    guard let hash = MediaHash(try reader.requiredText("hash", longest: MediaHash.textCount)) else {
      throw reader.error("hash", "This must be a SHA-256: \(MediaHash.textCount) hexadecimal digits in lower case.")
    }
    guard let type = MediaType(name: try reader.requiredText("type", longest: FrameLimits.idBytes)) else {
      throw reader.error("type", "This must be one of: \(MediaType.allCases.map(\.name.description).joined(separator: ", ")).")
    }
    let size = try reader.required("size", try reader.integer("size", in: 0...Int64(MediaType.largestBytes)))
    media = Media(hash: hash, type: type, size: Int(size))
    options = try AttachmentOptions(reader["options"], path: reader.path + "options")
  }

  /// The JSON object.
  public var object: JSONValue {
    .object(present: [
      "identifier": identifier, "hash": media.hash.description, "type": media.type.name.description, "size": media.size,
      "options": options == AttachmentOptions() ? nil : options.object,
    ])
  }
}

/// The attachments as an entry contains them: their number (1 byte), then each one.
///
/// Each has the length (1) and bytes of the identifier, the hash (32), the type (1) and the size (8). Then come the length (2) and bytes of
/// the options as JSON.
extension NotificationAttachment {
  /// Appends a list of at most ``maximum``. An empty list has no bytes.
  public static func append(_ attachments: [NotificationAttachment], to buffer: inout ByteBuffer) {
    precondition(attachments.count <= maximum, "there are at most \(maximum) attachments")
    guard !attachments.isEmpty else { return }
    buffer.append(UInt8(attachments.count))
    for attachment in attachments {
      let identifier = attachment.identifier.utf8.prefix(identifierBytes)
      buffer.append(UInt8(identifier.count))
      for byte in identifier { buffer.append(byte) }
      attachment.media.hash.append(to: &buffer)
      buffer.append(attachment.media.type.rawValue)
      buffer.append(UInt64(attachment.media.size))
      let options = attachment.options == AttachmentOptions() ? "" : attachment.options.object.text
      buffer.append(UInt16(options.utf8.count))
      buffer.append(options)
    }
  }

  /// Reads the attachments of an entry; nil if the bytes are malformed.
  public static func list(_ field: UnsafeRawBufferPointer) -> [NotificationAttachment]? {
    if field.isEmpty { return [] }
    var reader = ByteReader(field)
    guard let count = reader.byte(), count <= maximum else { return nil }
    var list: [NotificationAttachment] = []
    for _ in 0..<count {
      guard let identifier = reader.shortField(), let hash = reader.bytes(MediaHash.byteCount).flatMap(MediaHash.init(bytes:)),
        let type = reader.byte().flatMap(MediaType.init(rawValue:)), let size = reader.integer(Int64.self), size >= 0,
        let text = reader.longField(), let options = options(text)
      else { return nil }
      list.append(
        NotificationAttachment(identifier: Name(identifier), media: Media(hash: hash, type: type, size: Int(size)), options: options))
    }
    return reader.rest.isEmpty ? list : nil
  }

  private static func options(_ text: UnsafeRawBufferPointer) -> AttachmentOptions? {
    if text.isEmpty { return AttachmentOptions() }
    return (try? JSONValue(parsing: text)).flatMap { try? AttachmentOptions($0, path: "") }
  }
}
