public import JSON

/// How a device shows an attachment: the options of `UNNotificationAttachment`.
public struct AttachmentOptions: Sendable, Equatable {
  /// The part of an image that its thumbnail shows, each from 0 to 1 of the image's size.
  public struct Clipping: Sendable, Equatable {
    /// The left edge, the upper edge, and the size.
    public var x, y, width, height: Double

    /// A part of an image.
    public init(x: Double, y: Double, width: Double, height: Double) { (self.x, self.y, self.width, self.height) = (x, y, width, height) }
  }

  /// The file's type as its publisher names it; what a device goes by is ``Media/type``.
  public var typeHint: String?
  /// Whether there is no thumbnail.
  public var isThumbnailHidden = false
  /// The part that the thumbnail shows; all of it where there is none.
  public var thumbnailClipping: Clipping?
  /// The moment of a video, in seconds, or the frame of an animated image, that is the thumbnail.
  public var thumbnailTime: Double?

  /// No options.
  public init() {}

  /// The longest ``typeHint``, in bytes.
  public static var typeHintBytes: Int { 128 }
  /// The latest ``thumbnailTime``: a day.
  public static var longestTime: Double { 86_400 }

  /// Reads the members `typeHint`, `thumbnailHidden`, `thumbnailClipping` and `thumbnailTime`; others are passed over. No options where there
  /// is no value.
  ///
  /// - Parameter path: where the object stands, for errors.
  public init(_ value: JSONValue?, path: String) throws(FieldError) {
    guard let value else { return }
    let reader = try ObjectReader(value, path: path)
    typeHint = try reader.text("typeHint", longest: Self.typeHintBytes)
    if let hidden = reader["thumbnailHidden"] {
      guard let isHidden = hidden.boolValue else { throw reader.error("thumbnailHidden", "This must be true or false.") }
      isThumbnailHidden = isHidden
    }
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

  /// As a JSON object; only what is said.
  public var object: JSONValue {
    var members: [JSONValue.Member] = []
    func add(_ key: String, _ value: JSONValue) { members.append(JSONValue.Member(key: key, value: value)) }
    if let typeHint { add("typeHint", .string(typeHint)) }
    if isThumbnailHidden { add("thumbnailHidden", true) }
    if let part = thumbnailClipping {
      add(
        "thumbnailClipping",
        [
          "x": JSONValue(floatLiteral: part.x), "y": JSONValue(floatLiteral: part.y), "width": JSONValue(floatLiteral: part.width),
          "height": JSONValue(floatLiteral: part.height),
        ])
    }
    if let thumbnailTime { add("thumbnailTime", JSONValue(floatLiteral: thumbnailTime)) }
    return .object(members)
  }
}
