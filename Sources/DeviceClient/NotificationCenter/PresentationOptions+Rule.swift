internal import JSON
public import Notifications

extension PresentationOptions {
  /// All ways of showing a notification.
  public static let all: PresentationOptions = [.banner, .lockScreen, .list, .sound, .badge]

  /// Whether nothing is shown.
  public var showsNothing: Bool { isDisjoint(with: .all) }

  /// The ways in which the person allows to show a notification at this moment.
  ///
  /// The rules are those by which the cluster hands a notification over: see the article on the device protocol. An option that the
  /// authorization does not mention is allowed, except for the summary.
  ///
  /// - Parameters:
  ///   - countingAs: what its interruption level counts as, where that is not the content's.
  ///   - isQuiet: the person's quiet hours hold.
  public init(
    of content: NotificationContent, countingAs level: InterruptionLevel? = nil, under authorization: Authorization,
    isQuiet hoursHold: Bool = false
  ) {
    func allows(_ option: Authorization.Option) -> Bool { authorization.options[option] ?? true }
    self = []
    var level = level ?? content.interruptionLevel
    if level == .critical, !allows(.criticalAlert) { level = .active }
    if level == .timeSensitive, !allows(.timeSensitive) { level = .active }
    let breaksThrough = level == .timeSensitive || level == .critical
    var isQuiet = !breaksThrough && (hoursHold || authorization.options[.scheduledDelivery] == true)
    switch authorization.status {
    case .denied, .notDetermined: return
    case .provisional: isQuiet = true
    case .authorized, .ephemeral: break
    }
    let interrupts = !isQuiet && level != .passive
    if content.hasAlert {
      if interrupts, allows(.alert) { insert(.banner) }
      if !isQuiet, allows(.lockScreen) { insert(.lockScreen) }
      if allows(.notificationCenter) { insert(.list) }
    }
    if content.sound != nil, interrupts, level == .critical || allows(.sound) { insert(.sound) }
    if content.badge != nil, authorization.status != .provisional, allows(.badge) { insert(.badge) }
    if isQuiet, !isEmpty { insert(.quietly) }
  }

  /// The ways that both allow; quietly if either says so.
  func limited(to other: PresentationOptions) -> PresentationOptions {
    let ways = intersection(other).intersection(.all)
    return ways.isEmpty ? [] : ways.union(union(other).intersection(.quietly))
  }
}
