public import Notifications

/// How a notification is shown.
public struct Presentation: OptionSet, Sendable, Hashable {
  /// The bits.
  public let rawValue: UInt8

  /// A presentation of these bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// On top of the screen.
  public static let banner = Presentation(rawValue: 1)
  /// In the list of delivered notifications.
  public static let list = Presentation(rawValue: 2)
  /// With its sound.
  public static let sound = Presentation(rawValue: 4)
  /// The number at the application's icon.
  public static let badge = Presentation(rawValue: 8)

  /// The presentation that the person allows: nothing without an authorization, and only the list if it is provisional.
  ///
  /// An option that the authorization does not mention is allowed.
  public init(of content: NotificationContent, under authorization: Authorization) {
    func allows(_ option: Authorization.Option) -> Bool { authorization.options[option] ?? true }
    self = []
    switch authorization.status {
    case .denied, .notDetermined: return
    case .provisional:
      if content.hasAlert, allows(.notificationCenter) { insert(.list) }
    case .authorized, .ephemeral:
      let isQuiet = content.interruptionLevel == .passive
      if content.hasAlert, allows(.notificationCenter) { insert(.list) }
      if content.hasAlert, allows(.alert), !isQuiet { insert(.banner) }
      if content.sound != nil, allows(.sound), !isQuiet { insert(.sound) }
      if content.badge != nil, allows(.badge) { insert(.badge) }
    }
  }

  /// The names of its parts, in a fixed order.
  public var names: [String] {
    let all: [(Presentation, String)] = [(.banner, "banner"), (.list, "list"), (.sound, "sound"), (.badge, "badge")]
    return all.filter { contains($0.0) }.map(\.1)
  }
}
