import Notifications
import Store

/// What the devices of a person get of one request, where that depends on their locales: made when a device of the locale comes up, and
/// once for all locales that get the same. It lives as long as its request is in flight, in the arena of which it writes.
final class ContentVariants {
  private let make: (_ locale: String?) -> RequestContent
  private let key: (_ locale: String?) -> String
  private var made: [String: RequestContent] = [:]

  /// - Parameters:
  ///   - key: the same for locales that get the same.
  ///   - make: makes what a locale gets.
  init(key: @escaping (_ locale: String?) -> String, make: @escaping (_ locale: String?) -> RequestContent) {
    (self.key, self.make) = (key, make)
  }

  /// What a device of a locale gets.
  ///
  /// - Parameter isNew: told when it was made now.
  func content(_ locale: String?, isNew: (RequestContent) -> Void) -> RequestContent {
    let key = key(locale)
    if let content = made[key] { return content }
    let content = make(locale)
    made[key] = content
    isNew(content)
    return content
  }
}
