public import Extensions
internal import Glibc
public import Notifications

/// Files of the program that its service extension attaches, as `file:` URLs.
extension ContentAttachment {
  /// An attachment that is a file of the program (`UNNotificationAttachment(identifier:url:options:)`). The device moves it into its store.
  ///
  /// - Parameter path: one that is relative begins at the current folder.
  public init(identifier: Name, path: String, options: AttachmentOptions = AttachmentOptions()) {
    var url = Self.scheme
    for byte in (path.utf8.first == UInt8(ascii: "/") ? path : Self.currentFolder + "/" + path).utf8 {
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
        UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/"):
        url.unicodeScalars.append(Unicode.Scalar(byte))
      default: url += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    self.init(identifier: identifier, url: url, options: options)
  }

  /// The path of a file on this device; nil if the attachment is none.
  var filePath: String? {
    guard case .url(let url) = source, url.utf8.starts(with: Self.scheme.utf8) else { return nil }
    var path: [UInt8] = []
    var rest = url.utf8.dropFirst(Self.scheme.utf8.count)
    guard rest.first == UInt8(ascii: "/") else { return nil }
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        path.append(byte)
        continue
      }
      guard let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16), value != 0, rest.count >= 2 else { return nil }
      path.append(value)
      rest = rest.dropFirst(2)
    }
    return String(decoding: path, as: UTF8.self)
  }

  private static var scheme: String { "file://" }

  private static var currentFolder: String {
    guard let folder = getcwd(nil, 0) else { return "" }
    defer { free(folder) }
    return String(cString: folder)
  }
}
