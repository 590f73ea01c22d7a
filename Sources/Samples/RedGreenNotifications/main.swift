import DeviceClient
import DeviceTerminal
import EventLoop
import Glibc
import Notifications
import Synchronization

/// A phone and its watch with local notifications in two colors: `RedGreenNotifications URL TOKEN USER`. Type `red` or `green` at it, and what
/// `DeviceTerminal.help` says; after `watch` that is done on the watch. The cluster may send notifications of these categories as well.
final class Squares: UserNotificationCenterDelegate {
  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions { [.banner, .list, .sound, .badge] }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    DeviceTerminal.print("-- the application has the action \(response.actionIdentifier) of \(response.notification.identifier)")
  }
}

/// The channel between the phone and its watch. A program has a radio for it; here both are in one process.
final class Channel: Sendable {
  let devices = Mutex<(phone: Device?, watch: Device?)>((nil, nil))

  func end(of side: WatchConnectivity.Side) -> WatchConnectivity {
    WatchConnectivity(side) { data in
      let devices = self.devices.withLock { $0 }
      Task { await (side == .phone ? devices.watch : devices.phone)?.didReceiveMessageData(data) }
    }
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
let channel = Channel()
configuration.watchConnectivity = channel.end(of: .phone)
var watchConfiguration = DeviceConfiguration(urls: [], application: "com.example.squares")
watchConfiguration.watchConnectivity = channel.end(of: .watch)
watchConfiguration.contentExtensions = configuration.contentExtensions
let loop = EventLoop(name: "devices")
let device = Device(configuration, on: loop) { DeviceTerminal.show($0) }
let watch = Device(watchConfiguration, on: loop) { event in
  if case .shown(let notification) = event { DeviceTerminal.print("-- on the watch: \(notification.content.body)") }
  if case .panel = event { DeviceTerminal.show(event) }
}
channel.devices.withLock { $0 = (device, watch) }
try await watch.start()
try await device.start()
try await device.userNotificationCenter.requestAuthorization(options: [.alert, .sound, .badge])

await DeviceTerminal.run(device) { line in
  if line.hasPrefix("watch ") {
    try await DeviceTerminal.perform(line.split(separator: " ").dropFirst().map(String.init), watch)
    return true
  }
  guard let color = colors.first(where: { $0.text == line }) else { return false }
  let content = NotificationContent(title: "A square", body: "It is \(color)", categoryIdentifier: color)
  try await device.userNotificationCenter.add(NotificationRequest(identifier: color, content: content))
  return true
}
await device.close()
await watch.close()
