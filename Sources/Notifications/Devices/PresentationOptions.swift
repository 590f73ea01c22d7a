public import JSON

/// How a device may present a notification: the words of `presentation` in `notify`.
///
/// Without any option the device stores the notification or wakes its application, and shows nothing.
public struct PresentationOptions: OptionSet, Sendable, Hashable, CustomStringConvertible, JSONWritable {
  /// The bits.
  public let rawValue: UInt8

  /// Creates options from their bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// On top of the present screen.
  public static let banner = PresentationOptions(rawValue: 1)
  /// On the locked screen.
  public static let lockScreen = PresentationOptions(rawValue: 2)
  /// In the list of delivered notifications.
  public static let list = PresentationOptions(rawValue: 4)
  /// With its sound and a vibration.
  public static let sound = PresentationOptions(rawValue: 8)
  /// The number on the application's icon.
  public static let badge = PresentationOptions(rawValue: 16)
  /// Without lighting the screen: the person asked for quiet, or has not decided yet.
  public static let quietly = PresentationOptions(rawValue: 32)

  /// Whether a platform shows only badges.
  public static func areBadgesOnly(on platform: String) -> Bool {
    // The length excludes most other platforms.
    platform.utf8.count == 4 && platform.lowercased() == "tvos"
  }

  private static let words: [(option: PresentationOptions, word: StaticString)] = [
    (.banner, "banner"), (.lockScreen, "lockScreen"), (.list, "list"), (.sound, "sound"), (.badge, "badge"), (.quietly, "quietly"),
  ]

  /// Reads the options of these words. Other words are ignored.
  init(words: [String]) {
    self = []
    for (option, word) in Self.words where words.contains(word.description) { insert(option) }
  }

  /// The words of the options, in a fixed order.
  public var names: [String] { Self.words.filter { contains($0.option) }.map(\.word.description) }

  /// The words of the options.
  public var description: String { "[\(names.joined(separator: ", "))]" }

  /// Appends the words as an array.
  public func write(to json: inout JSONWriter) {
    json.openArray()
    for (option, word) in Self.words where contains(option) { json.string(word: word) }
    json.closeArray()
  }
}
