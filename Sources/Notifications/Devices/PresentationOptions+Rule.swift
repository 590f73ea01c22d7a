extension PresentationOptions {
  /// All ways of showing a notification.
  public static let all: PresentationOptions = [.banner, .lockScreen, .list, .sound, .badge]

  /// The ways in which a person's settings allow to show a notification. The cluster asks at the hand-over, the device when it shows it.
  ///
  /// | way | only for a notification with | only where allowed | not while quiet | not for passive ones |
  /// |---|---|---|---|---|
  /// | banner | an alert | `alert` | ✓ | ✓ |
  /// | lockScreen | an alert | `lockScreen` | ✓ | |
  /// | list | an alert | `notificationCenter` | | |
  /// | sound | a sound | `sound`; for a critical one `criticalAlert` | ✓ | ✓ |
  /// | badge | a badge | `badge` | | |
  ///
  /// An option that the settings do not mention is allowed, except for `scheduledDelivery`. If the status is denied or not determined,
  /// nothing is allowed; if it is provisional, only the list, quietly. A summary (`scheduledDelivery`) and the person's quiet hours make
  /// notifications quiet, except for time-sensitive and critical ones.
  ///
  /// - Parameters:
  ///   - wanted: what the notification has: an alert, a sound, a badge.
  ///   - level: what its interruption level counts as under the settings.
  ///   - isQuiet: the person's quiet hours hold.
  public init(for wanted: PayloadFlags, at level: InterruptionLevel, under authorization: Authorization, isQuiet hoursHold: Bool) {
    self = []
    let breaksThrough = level == .timeSensitive || level == .critical
    var isQuiet = !breaksThrough && (hoursHold || authorization.options[.scheduledDelivery] == true)
    switch authorization.status {
    case .denied, .notDetermined: return
    case .provisional: isQuiet = true
    case .authorized, .ephemeral: break
    }
    let interrupts = !isQuiet && level != .passive
    if wanted.contains(.alert) {
      if interrupts, authorization.allows(.alert) { insert(.banner) }
      if !isQuiet, authorization.allows(.lockScreen) { insert(.lockScreen) }
      if authorization.allows(.notificationCenter) { insert(.list) }
    }
    if wanted.contains(.sound), interrupts, level == .critical || authorization.allows(.sound) { insert(.sound) }
    if wanted.contains(.badge), authorization.status != .provisional, authorization.allows(.badge) { insert(.badge) }
    if isQuiet, !isEmpty { insert(.quietly) }
  }
}

extension Authorization {
  /// Whether an option is allowed: also where it is not mentioned.
  public func allows(_ option: Option) -> Bool { options[option] ?? true }

  /// What an interruption level counts as: a time-sensitive or critical one as active, if its option is switched off, or if the application
  /// was not granted it.
  ///
  /// - Parameter granted: answers the application's grants; called only if they matter.
  public func counted(_ level: InterruptionLevel, granted: () -> GrantedLevels = { [.timeSensitive, .critical] }) -> InterruptionLevel {
    switch level {
    case .critical where !allows(.criticalAlert) || !granted().contains(.critical): .active
    case .timeSensitive where !allows(.timeSensitive) || !granted().contains(.timeSensitive): .active
    default: level
    }
  }
}
