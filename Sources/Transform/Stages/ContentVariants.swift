import Notifications
import Store

/// What the devices of a person get of one request, where that depends on their locales or on themselves: made when the first device of a
/// variant comes up, and once for all that get the same. It lives as long as its request is in flight, in the arena of which it writes.
final class ContentVariants {
  /// A device: its token in the request's arena, and its locale, where that is asked for.
  typealias Device = (token: ArenaSpan, locale: String?)

  /// Whether devices' locales are to be asked for.
  let usesLocale: Bool
  private let key: (Device) -> Name
  private let make: (Device) -> RequestContent
  private var made: [Name: RequestContent] = [:]

  /// - Parameters:
  ///   - usesLocale: whether one of the others needs a device's locale.
  ///   - key: the same for devices that get the same.
  ///   - make: makes what a device gets.
  init(usesLocale: Bool, key: @escaping (Device) -> Name, make: @escaping (Device) -> RequestContent) {
    (self.usesLocale, self.key, self.make) = (usesLocale, key, make)
  }

  /// What a device gets.
  ///
  /// - Parameter isNew: told when it was made now.
  func content(for device: Device, isNew: (RequestContent) -> Void) -> RequestContent {
    let key = key(device)
    if let content = made[key] { return content }
    let content = make(device)
    made[key] = content
    isNew(content)
    return content
  }
}
