public import Notifications

extension MediaType {
  /// The number of first bytes that show the type of a file.
  public static var tellingBytes: Int { 16 }

  /// The type of a file by its first ``tellingBytes``; nil if it has none of the types.
  public init?(beginning bytes: some Collection<UInt8>) {
    let bytes = Array(bytes.prefix(Self.tellingBytes))
    func has(_ text: StaticString, at place: Int = 0) -> Bool {
      let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
      return bytes.count >= place + text.count && bytes[place...].starts(with: text)
    }
    if bytes.starts(with: [0xFF, 0xD8, 0xFF]) {
      self = .jpeg
    } else if has("GIF87a") || has("GIF89a") {
      self = .gif
    } else if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else if has("FORM"), has("AIFF", at: 8) || has("AIFC", at: 8) {
      self = .aiff
    } else if has("RIFF"), has("WAVE", at: 8) {
      self = .wav
    } else if has("RIFF"), has("AVI ", at: 8) {
      self = .avi
    } else if has("ftyp", at: 4), let type = Self.brand(String(decoding: bytes.dropFirst(8).prefix(4), as: UTF8.self)) {
      self = type
    } else if bytes.starts(with: [0, 0, 1, 0xBA]) || bytes.starts(with: [0, 0, 1, 0xB3]) {
      // A pack of a program stream, or a sequence (ISO/IEC 13818-1, section 2.5.3; 13818-2, section 6.2.2).
      self = .mpeg
    } else if has("ID3") || Self.isLayerThree(bytes) {
      self = .mp3
    } else {
      return nil
    }
  }

  /// The type of a file by its major brand (ISO/IEC 14496-12, section 4.3).
  private static func brand(_ brand: String) -> MediaType? {
    switch brand {
    case "M4A ", "M4B ": .m4a
    case "isom", "iso2", "iso4", "iso5", "iso6", "mp41", "mp42", "avc1", "M4V ", "M4VH", "M4VP", "MSNV", "dash", "3gp4", "3gp5", "3gp6":
      .mp4
    default: nil
    }
  }

  /// Whether these begin with a frame of MPEG audio, layer III (ISO/IEC 11172-3, section 2.4.2.3): no reserved value in its header.
  private static func isLayerThree(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 4, bytes[0] == 0xFF, bytes[1] & 0xE0 == 0xE0 else { return false }
    let (version, layer) = (bytes[1] >> 3 & 3, bytes[1] >> 1 & 3)
    let (bitRate, sampling) = (bytes[2] >> 4, bytes[2] >> 2 & 3)
    return version != 1 && layer == 1 && bitRate != 0 && bitRate != 15 && sampling != 3
  }
}
