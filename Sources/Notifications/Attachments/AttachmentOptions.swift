public import JSON

/// How a device shows an attachment: the options of `UNNotificationAttachment`.
public struct AttachmentOptions: Sendable, Equatable {
  /// The part of an image in its thumbnail.
  ///
  /// Each number is a share of the image's size, from 0 to 1.
  public struct Clipping: Sendable, Equatable {
    /// The left edge, the upper edge, and the size.
    public var x, y, width, height: Double

    /// Creates a part of an image.
    public init(x: Double, y: Double, width: Double, height: Double) { (self.x, self.y, self.width, self.height) = (x, y, width, height) }
  }

  /// The file's type as its publisher names it. Devices use ``Media/type``.
  public var typeHint: String?
  /// Whether the thumbnail is hidden.
  public var isThumbnailHidden = false
  /// The part of the image in the thumbnail; nil for all of it.
  public var thumbnailClipping: Clipping?
  /// The thumbnail's time in a video, in seconds, or frame of an animated image.
  public var thumbnailTime: Double?

  /// Creates default options.
  public init() {}

  /// The longest ``typeHint``, in bytes.
  public static var typeHintBytes: Int { 128 }
  /// The latest ``thumbnailTime``: a day.
  public static var longestTime: Double { 86_400 }

  /// Reads the members `typeHint`, `thumbnailHidden`, `thumbnailClipping` and `thumbnailTime`.
  ///
  /// Other members are ignored. Without a value the options are the default.
  ///
  /// - Parameter path: the path of the object, for errors.
  public init(_ value: JSONValue?, path: String) throws(FieldError) {
    guard let value else { return }
    let reader = try ObjectReader(value, path: path)
    typeHint = try reader.text("typeHint", longest: Self.typeHintBytes)
    isThumbnailHidden = try reader.flag("thumbnailHidden", "This must be true or false.") ?? false
    if let clipping = reader["thumbnailClipping"] {
      let part = try ObjectReader(clipping, path: path + ".thumbnailClipping")
      func number(_ key: String) throws(FieldError) -> Double {
        guard let number = part[key]?.doubleValue, (0...1).contains(number) else {
          throw part.error(key, "This must be a number from 0 to 1.")
        }
        return number
      }
      thumbnailClipping = Clipping(x: try number("x"), y: try number("y"), width: try number("width"), height: try number("height"))
    }
    if let time = reader["thumbnailTime"] {
      guard let seconds = time.doubleValue, (0...Self.longestTime).contains(seconds) else {
        throw reader.error("thumbnailTime", "This must be a number of seconds, or of a frame, from 0 to \(Int(Self.longestTime)).")
      }
      thumbnailTime = seconds
    }
  }

  /// The JSON object, with the options that are set.
  public var object: JSONValue {
    .object(present: [
      "typeHint": typeHint, "thumbnailHidden": isThumbnailHidden ? true : nil,
      "thumbnailClipping": thumbnailClipping.map { JSONValue.object(["x": $0.x, "y": $0.y, "width": $0.width, "height": $0.height]) },
      "thumbnailTime": thumbnailTime,
    ])
  }
}
