public import JSON

/// How a device may present a notification: the words of `presentation` in the frame `notify`.
///
/// None of them: the notification is stored, or wakes its application, and is not shown.
public struct PresentationOptions: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt8

  /// Options of these bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// On top of the screen that the person looks at.
  public static let banner = PresentationOptions(rawValue: 1)
  /// On the locked screen.
  public static let lockScreen = PresentationOptions(rawValue: 2)
  /// In the list of delivered notifications.
  public static let list = PresentationOptions(rawValue: 4)
  /// With its sound, and a vibration.
  public static let sound = PresentationOptions(rawValue: 8)
  /// The number at the application's icon.
  public static let badge = PresentationOptions(rawValue: 16)
  /// Without lighting the screen: the person asked for quiet, or has not decided yet.
  public static let quietly = PresentationOptions(rawValue: 32)

  /// Whether a platform shows nothing but badges.
  public static func areBadgesOnly(on platform: String) -> Bool {
    // The length tells of most platforms that they are another one.
    platform.utf8.count == 4 && platform.lowercased() == "tvos"
  }

  private static let words: [(option: PresentationOptions, word: StaticString)] = [
    (.banner, "banner"), (.lockScreen, "lockScreen"), (.list, "list"), (.sound, "sound"), (.badge, "badge"), (.quietly, "quietly"),
  ]

  /// The options of these words; others are passed over.
  init(words: [String]) {
    self = []
    for (option, word) in Self.words where words.contains(word.description) { insert(option) }
  }

  /// The words of the options, in a fixed order.
  public var names: [String] { Self.words.filter { contains($0.option) }.map(\.word.description) }

  /// Appends the words as an array.
  public func write(to json: inout JSONWriter) {
    json.openArray()
    for (option, word) in Self.words where contains(option) { json.string(word: word) }
    json.closeArray()
  }
}
