import DeviceClient
import DeviceTerminal
import EventLoop
import Glibc
import Notifications

/// A device with local notifications in two colors: `RedGreenNotifications URL TOKEN USER`. Type `red` or `green` at it, and what
/// `DeviceTerminal.help` says. The cluster may send notifications of these categories as well.
final class Squares: UserNotificationCenterDelegate {
  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    DeviceTerminal.print("-- the application has the action \(response.actionIdentifier) of \(response.notification.identifier)")
  }
}

let arguments = CommandLine.arguments
guard arguments.count == 4, let token = DeviceToken(arguments[2]) else {
  DeviceTerminal.print("RedGreenNotifications ws://HOST:PORT/v1/device TOKEN USER")
  exit(2)
}
let colors: [Name] = ["red", "green"]
var configuration = DeviceConfiguration(
  url: arguments[1],
  hello: Hello(
    device: token, application: "com.example.squares", user: Name(arguments[3]),
    categories: colors.map {
      NotificationCategory(identifier: $0, options: [.customDismissAction], actions: [RotationExtension.rotate])
    }))
configuration.delegate = Squares()
configuration.contentExtensions = [RotationExtension.declaration]
configuration.authorizationPrompt = { await DeviceTerminal.ask($0) }
let device = Device(configuration, on: EventLoop(name: "device")) { DeviceTerminal.show($0) }
try await device.start()
try await device.userNotificationCenter.requestAuthorization(options: [.alert, .sound, .badge])

await DeviceTerminal.run(device) { line in
  guard let color = colors.first(where: { $0.text == line }) else { return false }
  let content = NotificationContent(title: "A square", body: "It is \(color)", categoryIdentifier: color)
  try await device.userNotificationCenter.add(NotificationRequest(identifier: color, content: content))
  return true
}
await device.close()
