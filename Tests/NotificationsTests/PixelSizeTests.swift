import TestSupport
import Testing

@testable import Notifications

/// The size of an image is what its header has, and nothing that a file has makes the search fail.
@Suite struct PixelSizeTests {
  /// A segment of a JPEG.
  private static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
    [0xFF, marker, UInt8((content.count + 2) >> 8), UInt8((content.count + 2) & 0xFF)] + content
  }

  private static func frame(_ marker: UInt8) -> [UInt8] { segment(marker, [8, 0x01, 0xE0, 0x02, 0x80, 1, 1, 0x11, 0]) }

  static let examples: [(MediaType, [UInt8])] = [
    (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8) + [0, 0, 2, 0x80, 0, 0, 1, 0xE0]),
    (.gif, Array("GIF89a".utf8) + [0x80, 2, 0xE0, 1]), (.gif, Array("GIF87a".utf8) + [0x80, 2, 0xE0, 1]),
    (.jpeg, [0xFF, 0xD8] + frame(0xC0)),
    // A photo with a thumbnail's worth of other segments, and fill bytes, before a progressive frame.
    (
      .jpeg,
      [0xFF, 0xD8] + segment(0xE0, Array("JFIF".utf8)) + segment(0xE1, [UInt8](repeating: 0xFF, count: 60_000)) + segment(0xC4, [1, 2, 3])
        + [0xFF, 0xFF] + frame(0xC2)
    ),
  ]

  @Test(arguments: examples) func `an image has the size that its header says`(_ type: MediaType, _ bytes: [UInt8]) {
    #expect(PixelSize(beginning: bytes, of: type) == PixelSize(width: 640, height: 480))
    #expect(PixelSize(beginning: bytes + [1, 2, 3], of: type)?.description == "640 × 480")
  }

  @Test(arguments: examples) func `a header that is cut off has no size`(_ type: MediaType, _ bytes: [UInt8]) {
    for count in Set(0..<min(bytes.count, 60)).union(max(bytes.count - 20, 0)..<bytes.count) {
      let size = PixelSize(beginning: bytes.prefix(count), of: type)
      #expect(size == nil || size == PixelSize(width: 640, height: 480), "\(count)")
    }
    #expect(PixelSize(beginning: [], of: type) == nil)
    for other in [MediaType.aiff, .wav, .mp3, .m4a, .mpeg, .mp4, .avi] { #expect(PixelSize(beginning: bytes, of: other) == nil) }
  }

  @Test func `an image without columns or rows has no size`() {
    #expect(PixelSize(beginning: Array("GIF89a".utf8) + [0, 0, 1, 0], of: .gif) == nil)
    #expect(PixelSize(beginning: Array("GIF89a".utf8) + [1, 0, 0, 0], of: .gif) == nil)
    // The rows of this JPEG are said behind its first scan.
    #expect(PixelSize(beginning: [0xFF, 0xD8] + Self.segment(0xC0, [8, 0, 0, 2, 0x80, 1, 1, 0x11, 0]), of: .jpeg) == nil)
  }

  @Test(arguments: 0..<(isComplete ? 200 : 40) as Range<UInt64>) func `no bytes trap`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    for (type, bytes) in Self.examples {
      var bytes = bytes
      for _ in 0..<8 { bytes[.random(in: 0..<min(bytes.count, 80), using: &random)] = .random(in: 0...255, using: &random) }
      if let size = PixelSize(beginning: bytes, of: type) { #expect(size.width > 0 && size.height > 0) }
    }
  }
}
