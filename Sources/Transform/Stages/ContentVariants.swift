import Notifications
import Store

/// The contents of one request for a person's devices, if they depend on locale or device.
///
/// A variant's content is made for its first device, and used for all others of the variant. The object lives while its request is in
/// flight, and writes into the request's arena.
final class ContentVariants {
  /// A device: its token in the request's arena, and its locale if that is used.
  typealias Device = (token: ArenaSpan, locale: String?)

  /// Whether the contents depend on the devices' locales.
  let usesLocale: Bool
  private let key: (Device) -> Name
  private let make: (Device) -> RequestContent
  private var made: [Name: RequestContent] = [:]

  /// - Parameters:
  ///   - usesLocale: whether `key` or `make` needs a device's locale.
  ///   - key: returns a name that is equal for devices that get the same.
  ///   - make: makes the content for a device.
  init(usesLocale: Bool, key: @escaping (Device) -> Name, make: @escaping (Device) -> RequestContent) {
    (self.usesLocale, self.key, self.make) = (usesLocale, key, make)
  }

  /// Returns the content for a device.
  ///
  /// - Parameter isNew: called if the content was made now.
  func content(for device: Device, isNew: (RequestContent) -> Void) -> RequestContent {
    let key = key(device)
    if let content = made[key] { return content }
    let content = make(device)
    made[key] = content
    isNew(content)
    return content
  }
}
