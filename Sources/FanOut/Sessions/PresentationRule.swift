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
/// The ways are those of `PresentationOptions.init(for:at:under:isQuiet:)`. On a platform that shows badges only, only the badge is allowed.
struct PresentationRule {
  /// The answer for a notification.
  enum Answer {
    /// Send it, to be presented in these ways.
    case send(PresentationOptions, countingAs: InterruptionLevel?)
    /// End it, for this reason.
    case filtered(StaticString)
  }

  /// A device that gave none counts as authorized.
  let authorization: Authorization
  /// The device's platform can show nothing but a badge.
  let showsBadgesOnly: Bool

  /// The settings of a registered device.
  init(_ registration: Registration) {
    authorization = registration.authorization ?? Authorization(status: .authorized)
    showsBadgesOnly = registration.platform.map(PresentationOptions.areBadgesOnly(on:)) ?? false
  }

  /// Answers for a notification of this push type, whose payload asks for so much.
  ///
  /// - Parameters:
  ///   - isQuiet: the person's quiet hours hold.
  ///   - granted: answers the application's grants; called only if they matter.
  func answer(for pushType: PushType, _ flags: PayloadFlags, isQuiet: Bool, granted: () -> GrantedLevels) -> Answer {
    let wanted = flags.intersection([.alert, .sound, .badge])
    guard pushType == .alert || pushType == .liveactivity, !wanted.isEmpty else { return .send([], countingAs: nil) }
    let level = authorization.counted(flags.level, granted: granted)
    let shown = showsBadgesOnly ? wanted.intersection(.badge) : wanted
    let (options, reason) = shown.isEmpty ? ([], Self.badgesOnly) : options(for: shown, level, isQuiet: isQuiet)
    guard !options.isEmpty || flags.contains(.contentAvailable) || pushType == .liveactivity else { return .filtered(reason) }
    return .send(options, countingAs: level == flags.level ? nil : level)
  }

  private static let badgesOnly: StaticString = "the device's platform shows badges only, and the notification has none"

  /// The ways in which it may be presented, and the reason if there are none.
  private func options(for shown: PayloadFlags, _ level: InterruptionLevel, isQuiet: Bool) -> (PresentationOptions, StaticString) {
    func options(isQuiet: Bool) -> PresentationOptions { .init(for: shown, at: level, under: authorization, isQuiet: isQuiet) }
    switch authorization.status {
    case .denied: return ([], "the person does not allow notifications on the device")
    case .notDetermined: return ([], "the person was not asked yet whether the device may show notifications")
    case .authorized, .ephemeral, .provisional: break
    }
    let allowed = options(isQuiet: isQuiet)
    let isSilenced = allowed.isEmpty && isQuiet && !options(isQuiet: false).isEmpty
    return (
      allowed,
      isSilenced ? "nothing of it may be shown in the person's quiet hours" : "the device's settings let nothing of it be shown"
    )
  }
}
