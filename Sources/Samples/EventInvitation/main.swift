import DeviceClient
import DeviceTerminal
import EventLoop
import Glibc
import Notifications

/// A device that shows invitations: `EventInvitation URL TOKEN USER STATE-FILE`. Type at it what `DeviceTerminal.help` says.
final class Calendar: UserNotificationCenterDelegate {
  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions { [.banner, .list, .sound, .badge] }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    let comment = response.userText.map { ": \($0)" } ?? ""
    DeviceTerminal.print("-- the application has the action \(response.actionIdentifier) of \(response.notification.identifier)\(comment)")
  }
}

let invitation = NotificationCategory(
  identifier: "event-invite", options: [.customDismissAction],
  actions: [
    NotificationAction(identifier: "accept", title: "Accept"),
    NotificationAction(identifier: "decline", title: "Decline", options: [.destructive]),
    NotificationAction(identifier: "maybe", title: "Maybe"),
    NotificationAction(
      identifier: "comment", title: "Comment", textInput: .init(buttonTitle: "Send and dismiss", placeholder: "What do you want to say?")),
  ])

let arguments = CommandLine.arguments
guard arguments.count == 5, let token = DeviceToken(arguments[2]) else {
  DeviceTerminal.print("EventInvitation ws://HOST:PORT/v1/device TOKEN USER STATE-FILE")
  exit(2)
}
var configuration = DeviceConfiguration(
  url: arguments[1],
  hello: Hello(device: token, application: "com.example.events", user: Name(arguments[3]), categories: [invitation]))
configuration.stateFile = arguments[4]
configuration.delegate = Calendar()
configuration.contentExtensions = [InvitationExtension.declaration]
configuration.authorizationPrompt = { await DeviceTerminal.ask($0) }
let device = Device(configuration, on: EventLoop(name: "device")) { DeviceTerminal.show($0) }
try await device.start()
try await device.userNotificationCenter.requestAuthorization(options: [.alert, .sound, .badge])

await DeviceTerminal.run(device)
await device.close()
