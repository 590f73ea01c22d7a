import JSON
import Testing

@testable import Notifications

@Suite struct AttachmentTests {
  static let hash = MediaHash(String(repeating: "0123456789abcdef", count: 4))!
  static let photo = NotificationAttachment(identifier: "photo", media: Media(hash: hash, type: .png, size: 780), options: options)
  static let options = {
    var options = AttachmentOptions()
    options.typeHint = "public.png"
    options.isThumbnailHidden = true
    options.thumbnailClipping = AttachmentOptions.Clipping(x: 0, y: 0.25, width: 1, height: 0.5)
    options.thumbnailTime = 1.5
    return options
  }()

  static func field(_ attachments: [NotificationAttachment]) -> [UInt8] {
    var buffer = ByteBuffer()
    NotificationAttachment.append(attachments, to: &buffer)
    return buffer.withUnsafeBytes { Array($0) }
  }

  @Test func aListIsReadAsItWasWritten() {
    let plain = NotificationAttachment(identifier: "größe", media: Media(hash: Self.hash, type: .mp4, size: MediaType.largestBytes))
    for list in [[], [Self.photo], [plain, Self.photo], Array(repeating: Self.photo, count: NotificationAttachment.maximum)] {
      #expect(Self.field(list).withUnsafeBytes { NotificationAttachment.list($0) } == list)
    }
    #expect(Self.field([]).isEmpty)
  }

  /// Each shorter list, and each with one byte changed, is read as another list or as none.
  @Test func whatNoWorkerHasWrittenIsNoList() {
    let bytes = Self.field([Self.photo])
    for count in 1..<bytes.count {
      #expect(bytes.prefix(count).withUnsafeBytes { NotificationAttachment.list(UnsafeRawBufferPointer($0)) } == nil, "\(count) bytes")
    }
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 0xFF
      #expect(changed.withUnsafeBytes { NotificationAttachment.list($0) } != [Self.photo], "byte \(index)")
    }
    #expect((bytes + [0]).withUnsafeBytes { NotificationAttachment.list($0) } == nil)
  }

  @Test func anAttachmentIsReadFromItsObject() throws {
    #expect(try NotificationAttachment(Self.photo.object, path: "a") == Self.photo)
    #expect(try LinkedAttachment(Self.photo.object, path: "a").link == nil)
    let link = MediaLink(url: "https://push.example.com/v1/media/x", expires: 1_764_000_000)
    #expect(try LinkedAttachment(LinkedAttachment(Self.photo, link: link).object, path: "a") == LinkedAttachment(Self.photo, link: link))
  }

  @Test(arguments: [
    (#"{}"#, "a.identifier"), (#"{"identifier":""}"#, "a.identifier"), (#"{"identifier":"x"}"#, "a.hash"),
    (#"{"identifier":"x","hash":"00"}"#, "a.hash"),
    (#"{"identifier":"x","hash":"\#(hash.description.uppercased())","type":"image/png","size":1}"#, "a.hash"),
    (#"{"identifier":"x","hash":"\#(hash)","type":"image/webp","size":1}"#, "a.type"),
    (#"{"identifier":"x","hash":"\#(hash)","type":"image/png"}"#, "a.size"),
    (#"{"identifier":"x","hash":"\#(hash)","type":"image/png","size":-1}"#, "a.size"),
    (#"{"identifier":"x","hash":"\#(hash)","type":"image/png","size":52428801}"#, "a.size"),
    (#"{"identifier":"x","hash":"\#(hash)","type":"image/png","size":1,"options":1}"#, "a.options"),
    (#"{"identifier":"x","hash":"\#(hash)","type":"image/png","size":1,"options":{"thumbnailHidden":1}}"#, "a.options.thumbnailHidden"),
    (#"{"identifier":"x","hash":"\#(hash)","type":"image/png","size":1,"options":{"thumbnailTime":-1}}"#, "a.options.thumbnailTime"),
    (
      #"{"identifier":"x","hash":"\#(hash)","type":"image/png","size":1,"options":{"thumbnailClipping":{"x":2}}}"#,
      "a.options.thumbnailClipping.x"
    ),
  ])
  func aWrongMemberIsNamed(_ text: String, _ field: String) throws {
    let error = #expect(throws: FieldError.self) { try NotificationAttachment(try JSONValue(parsing: text), path: "a") }
    #expect(error?.field == field)
  }

  @Test func aHashIsItsDigits() {
    #expect(Self.hash.description == String(repeating: "0123456789abcdef", count: 4))
    for text in ["", "0", String(repeating: "0", count: 63), String(repeating: "G", count: 64), String(repeating: "A", count: 64)] {
      #expect(MediaHash(text) == nil)
    }
  }

  @Test func everyTypeIsKnownByItsName() {
    for type in MediaType.allCases { #expect(MediaType(name: type.name.description) == type) }
    #expect(MediaType(name: "text/html") == nil)
    #expect(MediaType.allCases.map(\.maximumBytes).max() == MediaType.largestBytes)
  }
}
