public import Extensions
internal import FoundationEssentials
public import Notifications

/// Files of the program that its service extension attaches, as `file:` URLs.
extension ContentAttachment {
  /// An attachment that is a file of the program (`UNNotificationAttachment(identifier:url:options:)`). The device moves it into its store.
  ///
  /// - Parameter path: one that is relative begins at the current folder.
  public init(identifier: Name, path: String, options: AttachmentOptions = AttachmentOptions()) {
    self.init(identifier: identifier, url: URL(filePath: path).absoluteString, options: options)
  }

  /// The path of a file on this device; nil if the attachment is none.
  var filePath: String? {
    guard case .url(let text) = source, let url = URL(string: text), url.isFileURL, url.host()?.isEmpty != false else { return nil }
    let path = url.path(percentEncoded: false)
    return path.hasPrefix("/") ? path : nil
  }
}
