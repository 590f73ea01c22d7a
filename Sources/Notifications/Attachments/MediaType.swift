/// A type of attachment, as in the UserNotifications framework (Apple, "UNNotificationAttachment").
///
/// The raw value is part of stored records: never renumber.
public enum MediaType: UInt8, Sendable, CaseIterable {
  /// An image in JPEG.
  case jpeg = 1
  /// An image in GIF.
  case gif = 2
  /// An image in PNG.
  case png = 3
  /// Audio in AIFF.
  case aiff = 4
  /// Audio in WAV.
  case wav = 5
  /// Audio in MP3.
  case mp3 = 6
  /// Audio in MPEG-4.
  case m4a = 7
  /// Video in MPEG-1 or MPEG-2.
  case mpeg = 8
  /// Video in MPEG-4.
  case mp4 = 9
  /// Video in AVI.
  case avi = 10

  /// The media type (RFC 6838).
  public var name: StaticString {
    switch self {
    case .jpeg: "image/jpeg"
    case .gif: "image/gif"
    case .png: "image/png"
    case .aiff: "audio/aiff"
    case .wav: "audio/wav"
    case .mp3: "audio/mpeg"
    case .m4a: "audio/mp4"
    case .mpeg: "video/mpeg"
    case .mp4: "video/mp4"
    case .avi: "video/x-msvideo"
    }
  }

  /// Finds the type of a name.
  public init?(name: String) {
    guard let type = Self.allCases.first(where: { $0.name.description == name }) else { return nil }
    self = type
  }

  /// The largest file of the type, in bytes.
  public var maximumBytes: Int {
    switch self {
    case .jpeg, .gif, .png: 10 << 20
    case .aiff, .wav, .mp3, .m4a: 5 << 20
    case .mpeg, .mp4, .avi: 50 << 20
    }
  }

  /// The largest file of any type, in bytes.
  public static var largestBytes: Int { 50 << 20 }
}
