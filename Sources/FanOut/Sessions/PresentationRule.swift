import Notifications

/// Decides in which ways a device's settings allow a notification to be shown, at its hand-over. A value.
///
/// The first row that applies decides:
///
/// | the notification | is |
/// |---|---|
/// | has a push type that shows nothing, such as `background`, or has no alert, sound and badge | sent, to be presented as nothing |
/// | may be shown in at least one way | sent, to be presented in these ways |
/// | is a Live Activity, or wakes its application besides | sent, to be presented as nothing |
/// | none of these | `filtered` |
///
/// | way | only for a notification with | only where allowed | not while quiet | not for passive ones |
/// |---|---|---|---|---|
/// | banner | an alert | `alert` | ✓ | ✓ |
/// | lockScreen | an alert | `lockScreen` | ✓ | |
/// | list | an alert | `notificationCenter` | | |
/// | sound | a sound | `sound`; for a critical one `criticalAlert` | ✓ | ✓ |
/// | badge | a badge | `badge` | | |
///
/// An option that the device does not mention is allowed, except for `scheduledDelivery`. If the status is denied or not determined,
/// nothing is allowed; if it is provisional, only the list, quietly. On a platform that shows badges only, only the badge is allowed. A
/// summary (`scheduledDelivery`) and the person's quiet hours make notifications quiet, except for time-sensitive and critical ones. These
/// two count as active if their option is switched off, or if the application was not granted them.
struct PresentationRule {
  /// The answer for a notification.
  enum Answer {
    /// Send it, to be presented in these ways.
    case send(PresentationOptions, countingAs: InterruptionLevel?)
    /// End it, for this reason.
    case filtered(StaticString)
  }

  /// Nil if the device gave none: then it counts as authorized.
  let authorization: Authorization?
  /// The device's platform can show nothing but a badge.
  let showsBadgesOnly: Bool

  /// The settings of a registered device.
  init(_ registration: Registration) {
    authorization = registration.authorization
    showsBadgesOnly = registration.platform.map(PresentationOptions.areBadgesOnly(on:)) ?? false
  }

  private func allows(_ option: Authorization.Option) -> Bool { authorization?.options[option] ?? true }

  /// Answers for a notification of this push type, whose payload asks for so much.
  ///
  /// - Parameters:
  ///   - isQuiet: the person's quiet hours hold.
  ///   - granted: answers the application's grants; called only if they matter.
  func answer(for pushType: PushType, _ flags: PayloadFlags, isQuiet: Bool, granted: () -> GrantedLevels) -> Answer {
    let wanted = flags.intersection([.alert, .sound, .badge])
    guard pushType == .alert || pushType == .liveactivity, !wanted.isEmpty else { return .send([], countingAs: nil) }
    let level = level(of: flags, granted)
    let shown = showsBadgesOnly ? wanted.intersection(.badge) : wanted
    let (options, reason) = shown.isEmpty ? ([], Self.badgesOnly) : options(for: shown, level, isQuiet: isQuiet)
    guard !options.isEmpty || flags.contains(.contentAvailable) || pushType == .liveactivity else { return .filtered(reason) }
    return .send(options, countingAs: level == flags.level ? nil : level)
  }

  private static let badgesOnly: StaticString = "the device's platform shows badges only, and the notification has none"

  private static let quietHours: StaticString = "nothing of it may be shown in the person's quiet hours"

  /// The level that the notification counts as.
  private func level(of flags: PayloadFlags, _ granted: () -> GrantedLevels) -> InterruptionLevel {
    switch flags.level {
    case .critical where !allows(.criticalAlert) || !granted().contains(.critical): .active
    case .timeSensitive where !allows(.timeSensitive) || !granted().contains(.timeSensitive): .active
    default: flags.level
    }
  }

  /// The ways in which it may be presented, and the reason if there are none.
  private func options(for shown: PayloadFlags, _ level: InterruptionLevel, isQuiet hoursHold: Bool) -> (PresentationOptions, StaticString)
  {
    let status = authorization?.status ?? .authorized
    let breaksThrough = level == .timeSensitive || level == .critical
    var isQuiet = !breaksThrough && (hoursHold || authorization?.options[.scheduledDelivery] == true)
    switch status {
    case .denied: return ([], "the person does not allow notifications on the device")
    case .notDetermined: return ([], "the person was not asked yet whether the device may show notifications")
    case .authorized, .ephemeral: break
    case .provisional: isQuiet = true
    }
    var options: PresentationOptions = []
    let interrupts = !isQuiet && level != .passive
    if shown.contains(.alert) {
      if interrupts, allows(.alert) { options.insert(.banner) }
      if !isQuiet, allows(.lockScreen) { options.insert(.lockScreen) }
      if allows(.notificationCenter) { options.insert(.list) }
    }
    if shown.contains(.sound), interrupts, level == .critical || allows(.sound) { options.insert(.sound) }
    if shown.contains(.badge), status != .provisional, allows(.badge) { options.insert(.badge) }
    if isQuiet, !options.isEmpty { options.insert(.quietly) }
    let isSilenced = options.isEmpty && hoursHold && !self.options(for: shown, level, isQuiet: false).0.isEmpty
    return (options, isSilenced ? Self.quietHours : "the device's settings let nothing of it be shown")
  }
}
