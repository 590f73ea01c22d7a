import Extensions
import Notifications
import Store

/// What the devices of a person get of one request, where that depends on their locales or on themselves: made when the first device of a
/// variant comes up, and once for all that get the same. It lives as long as its request is in flight, in the arena of which it writes.
final class ContentVariants {
  private let make: (_ device: ArenaSpan, _ locale: String?) -> RequestContent
  private let chain: ExtensionChain
  private var made: [String: RequestContent] = [:]

  /// - Parameters:
  ///   - chain: says who gets the same.
  ///   - make: makes what a device gets.
  init(_ chain: ExtensionChain, make: @escaping (_ device: ArenaSpan, _ locale: String?) -> RequestContent) {
    (self.chain, self.make) = (chain, make)
  }

  /// What a device gets.
  ///
  /// - Parameters:
  ///   - device: its token, in the request's arena.
  ///   - isNew: told when it was made now.
  func content(for device: ArenaSpan, in arena: Arena, _ locale: String?, isNew: (RequestContent) -> Void) -> RequestContent {
    let variant = chain.wholeVariant(of: arena.text(device), locale)
    if let content = made[variant] { return content }
    let content = make(device, locale)
    made[variant] = content
    isNew(content)
    return content
  }
}
