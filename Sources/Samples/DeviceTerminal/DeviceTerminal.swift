public import DeviceClient
import Glibc
public import Notifications

/// The screen and the fingers of a sample: prints what a device shows, and reads what the person does as lines of standard input.
public enum DeviceTerminal {
  /// What may be typed.
  public static let help = """
    list                   the delivered notifications
    expand ID              opens the panel of a notification
    act ID ACTION [TEXT]   takes an action
    tap CONTROL [TEXT]     taps a control of the panel, after the text was typed into it
    open ID                opens the notification, and so the application
    dismiss ID             dismisses the notification
    lock, unlock           locks the screen, and unlocks it
    quit                   ends, as the end of the input does
    """

  /// Prints a line at once, also into a pipe. What the cluster has sent must not control the terminal, and begins no line.
  public static func print(_ text: String) { printLines(Panel.plain(text)) }

  /// Prints lines whose text is plain.
  private static func printLines(_ text: String) {
    var text = text + "\n"
    text.withUTF8 { _ = write(STDOUT_FILENO, $0.baseAddress, $0.count) }
  }

  private static func text(_ notification: DeliveredNotification) -> String {
    "[\(notification.identifier)] \(notification.content.title): \(notification.content.body)"
  }

  /// What the screen shows of a notification when it comes, in the ways of its presentation.
  static func shown(_ notification: DeliveredNotification) -> String {
    let (ways, badge) = (notification.presentation, notification.content.badge)
    guard ways.isDisjoint(with: [.banner, .lockScreen]) else { return text(notification) }
    guard !ways.contains(.list) else { return "-- [\(notification.identifier)] is in the list" }
    return ways.contains(.badge) ? "-- badge \(badge ?? 0)" : "-- a sound"
  }

  /// Prints an event that a person should see.
  public static func show(_ event: DeviceEvent) {
    switch event {
    case .connected: print("-- connected")
    case .shown(let notification), .updated(let notification):
      print(shown(notification))
    case .panel(let panel): draw(panel)
    case .forwarded(let notification): print("-- the watch has shown \(notification.identifier)")
    case .panelClosed: print("-- the panel is closed")
    case .accepted(.request): print("-- the cluster has the change")
    case .refused(let frame): print("-- refused: \(frame.reason)")
    case .failed(let error): print("!! \(error)")
    default: break
    }
  }

  /// Asks the person whether the application may show notifications.
  public static func ask(_ options: Set<Authorization.Option>) async -> Bool {
    print("-- may this application show notifications? Type yes or no")
    // The device's loop must not wait for a person.
    return await Task.detached { readLine() == "yes" }.value
  }

  /// Draws a panel, in color on a terminal.
  private static func draw(_ panel: Panel) {
    printLines(panel.text(isColored: isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == nil))
  }

  /// Reads lines and does what they say, until `quit` or the end of the input.
  ///
  /// - Parameter more: does what a line of the sample's own says; false if it is none.
  public static func run(_ device: Device, more: (_ line: String) async throws -> Bool = { _ in false }) async {
    printLines(help)
    while let line = readLine(), line != "quit" {
      do {
        if try await !more(line) { try await perform(line.split(separator: " ", maxSplits: 3).map(String.init), device) }
      } catch {
        print("!! \(error)")
      }
    }
  }

  /// Does what the words of a line say.
  public static func perform(_ words: [String], _ device: Device) async throws {
    let names = words.dropFirst().map { Name($0) }
    switch (words.first, names.count) {
    case (nil, _): break
    case ("list", 0): for notification in await device.delivered { print(text(notification)) }
    case ("expand", 1): draw(try await device.expand(names[0]))
    case ("lock", 0): await device.setState(.locked)
    case ("unlock", 0): await device.setState(.foreground)
    case ("act", 2...): try await device.respond(to: names[0], action: names[1], userText: words.count > 3 ? words[3] : nil)
    case ("tap", 1...): try await device.tap(names[0], text: words.count > 2 ? words[2...].joined(separator: " ") : nil)
    case ("open", 1): try await device.open(names[0])
    case ("dismiss", 1): try await device.dismiss(names[0])
    default: printLines(help)
    }
  }
}
