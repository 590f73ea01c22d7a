internal import Notifications

/// What the program and the screen are doing, as the program tells the device.
public enum ApplicationState: String, Sendable, CaseIterable {
  /// The person looks at the program, which chooses how notifications are shown.
  case foreground
  /// The device is unlocked, and the person does something else.
  case background
  /// The screen is locked, and the program is in the background.
  case locked

  /// The ways of showing that the screen has.
  var ways: PresentationOptions { PresentationOptions.all.subtracting(self == .locked ? .banner : .lockScreen) }

  /// Whether the delegate chooses among the ways. Otherwise the person's settings do.
  var asksProgram: Bool { self == .foreground }
}

/// How the device carries out an action of the person in a state of the program.
struct ActionRule: Equatable {
  /// Whether the response is held until the device is unlocked.
  let waitsForUnlocking: Bool
  /// Whether the action brings the program to the foreground.
  let opensProgram: Bool

  /// - Parameter options: those of the action; none for opening and dismissing.
  init(_ action: Name, _ options: Set<NotificationAction.Option>, in state: ApplicationState) {
    opensProgram = action == NotificationAction.defaultIdentifier || options.contains(.foreground)
    // A program that comes to the foreground needs an unlocked screen, whatever its action says.
    waitsForUnlocking = state == .locked && (opensProgram || options.contains(.authenticationRequired))
  }
}
