import Notifications
import Testing

@testable import Extensions

/// Media are known by what they begin with, and by nothing that anybody says of them.
@Suite struct MediaTypeTests {
  static func bytes(_ beginning: [UInt8], count: Int = 64) -> [UInt8] {
    beginning + [UInt8](repeating: 0, count: max(0, count - beginning.count))
  }
  static func text(_ text: String, at place: Int = 0) -> [UInt8] { [UInt8](repeating: 0, count: place) + Array(text.utf8) }

  static let examples: [(MediaType, [UInt8])] = [
    (.jpeg, [0xFF, 0xD8, 0xFF, 0xE0]), (.gif, text("GIF87a")), (.gif, text("GIF89a")),
    (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]), (.aiff, text("FORM\0\0\0\0AIFF")), (.aiff, text("FORM\0\0\0\0AIFC")),
    (.wav, text("RIFF\0\0\0\0WAVE")), (.avi, text("RIFF\0\0\0\0AVI ")), (.mp3, text("ID3\u{3}")), (.mp3, [0xFF, 0xFB, 0x90, 0x64]),
    (.mp3, [0xFF, 0xF3, 0x40, 0xC0]), (.m4a, text("ftypM4A ", at: 4)), (.mp4, text("ftypisom", at: 4)), (.mp4, text("ftypmp42", at: 4)),
    (.mpeg, [0, 0, 1, 0xBA, 0x44]), (.mpeg, [0, 0, 1, 0xB3]),
  ]

  @Test(arguments: examples) func aFileIsKnownByItsBeginning(_ type: MediaType, _ beginning: [UInt8]) {
    #expect(MediaType(beginning: Self.bytes(beginning)) == type)
    #expect(MediaType(beginning: Self.bytes(beginning).prefix(MediaType.tellingBytes)) == type)
  }

  @Test func everyTypeHasAnExample() { #expect(Set(Self.examples.map(\.0)) == Set(MediaType.allCases)) }

  @Test(arguments: [
    [], [0xFF], text("<html>"), text("<?xml"), text("%PDF-1.7"), text("RIFF\0\0\0\0WEBP"), text("FORM\0\0\0\0ILBM"), text("GIF88a"),
    text("ftypqt  ", at: 4), text("ftypheic", at: 4), text("PK\u{3}\u{4}"), [0x7F] + text("ELF"), [0xFF, 0xFF, 0xFF, 0xFF],
    // Layer III with a reserved version, bit rate or sampling rate; layers I and II; a stream of AAC.
    [0xFF, 0xEB, 0x90, 0x64], [0xFF, 0xFB, 0xF0, 0x64], [0xFF, 0xFB, 0x00, 0x64], [0xFF, 0xFB, 0x9C, 0x64], [0xFF, 0xFF, 0x90, 0x64],
    [0xFF, 0xFD, 0x90, 0x64], [0xFF, 0xF1, 0x50, 0x80],
  ])
  func anythingElseIsNoMedia(_ beginning: [UInt8]) {
    #expect(MediaType(beginning: Self.bytes(beginning)) == nil)
    #expect(MediaType(beginning: beginning) == nil)
  }

  /// What is cut off before it tells is nothing, and nothing traps.
  @Test func tooLittleTellsNothing() {
    for (type, beginning) in Self.examples {
      for count in 0..<beginning.count {
        let found = MediaType(beginning: beginning.prefix(count))
        #expect(found == nil || found == type)
      }
    }
  }
}
