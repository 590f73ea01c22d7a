/// The size of an image in pixels, as the header of its file has it.
public struct PixelSize: Sendable, Hashable, CustomStringConvertible {
  /// The number of first bytes of a file that are searched for the size.
  public static var searchedBytes: Int { 256 << 10 }

  /// The number of columns.
  public let width: Int
  /// The number of rows.
  public let height: Int

  /// Creates a size.
  public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }

  /// Reads the first ``searchedBytes`` of a file; nil if they do not have the size, or if the type is no image.
  public init?(beginning bytes: some Collection<UInt8>, of type: MediaType) {
    let bytes = Array(bytes.prefix(Self.searchedBytes))
    let size: PixelSize? =
      switch type {
      case .png: Self.png(bytes)
      case .gif: Self.gif(bytes)
      case .jpeg: Self.jpeg(bytes)
      case .aiff, .wav, .mp3, .m4a, .mpeg, .mp4, .avi: nil
      }
    guard let size, size.width > 0, size.height > 0 else { return nil }
    self = size
  }

  /// The width and the height.
  public var description: String { "\(width) × \(height)" }

  /// The first chunk of a PNG (W3C, "Portable Network Graphics", section 11.2.1).
  private static func png(_ bytes: [UInt8]) -> PixelSize? {
    guard bytes.count >= 24, bytes[12..<16].elementsEqual("IHDR".utf8) else { return nil }
    return PixelSize(width: number(bytes[16..<20]), height: number(bytes[20..<24]))
  }

  /// The logical screen of a GIF (CompuServe, "Graphics Interchange Format", version 89a, section 18).
  private static func gif(_ bytes: [UInt8]) -> PixelSize? {
    guard bytes.count >= 10 else { return nil }
    return PixelSize(width: number(bytes[6..<8].reversed()), height: number(bytes[8..<10].reversed()))
  }

  /// The first frame of a JPEG, behind segments of any kind (ITU-T T.81, sections B.1.1 and B.2.2).
  private static func jpeg(_ bytes: [UInt8]) -> PixelSize? {
    var place = 2
    while place + 9 <= bytes.count, bytes[place] == 0xFF {
      switch bytes[place + 1] {
      case 0xFF: place += 1
      case 0x01, 0xD0...0xD7: place += 2
      case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
        return PixelSize(width: number(bytes[(place + 7)..<(place + 9)]), height: number(bytes[(place + 5)..<(place + 7)]))
      case 0xD8, 0xD9, 0xDA: return nil
      default: place += 2 + max(number(bytes[(place + 2)..<(place + 4)]), 2)
      }
    }
    return nil
  }

  /// The number of big-endian bytes.
  private static func number(_ bytes: some Collection<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
