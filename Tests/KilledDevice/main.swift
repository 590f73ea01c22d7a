import DeviceClient
import EventLoop
import Glibc
import KillingDisk
import Notifications

/// A device that adds a local request, shows what comes, opens the notification `b`, and leaves: `KilledDevice URL TOKEN STATE-FILE STEP`.
/// It is killed at the step of its disk that it was told; 0 is none. What it shows and does is a line each on standard output.
///
/// With a fifth argument it expands `b` and likes it there: `forwards` has a content extension that forwards the response, `traps` one that
/// traps.
private func line(_ text: String) {
  var text = text + "\n"
  text.withUTF8 { _ = write(STDOUT_FILENO, $0.baseAddress, $0.count) }
}

/// Forwards each response, or traps.
private final class Like: ContentExtension {
  func didReceive(_ notification: DeliveredNotification, in context: ContentExtensionContext) {}

  func didReceive(_ response: NotificationResponse, in context: ContentExtensionContext) async -> ContentExtensionResponseOption {
    line("asked \(response.id)")
    precondition(CommandLine.arguments.last != "traps", "this extension has a defect")
    return .dismissAndForwardAction
  }
}

/// The application, which tells what it takes.
private final class Told: UserNotificationCenterDelegate {
  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    line("told \(response.id)")
  }
}

let arguments = CommandLine.arguments
let likes = arguments.count == 6
guard likes || arguments.count == 5, let token = DeviceToken(arguments[2]), let step = Int(arguments[4]) else { exit(2) }
// Root may write everything, so a test of permissions has another user.
if getenv("CARILLON_TEST_AS_NOBODY") != nil, getuid() == 0 { _ = setuid(65_534) }
killing_disk_begin(step)

let (events, continuation) = AsyncStream.makeStream(of: DeviceEvent.self, bufferingPolicy: .bufferingOldest(1_000))
let loop = EventLoop(name: "device")
var configuration = DeviceConfiguration(url: arguments[1], hello: Hello(device: token, application: "com.example.shop"))
configuration.stateFile = arguments[3]
if likes {
  configuration.hello.categories = [
    NotificationCategory(identifier: "reply", actions: [NotificationAction(identifier: "like", title: "Like")])
  ]
  configuration.contentExtensions = [ContentExtensionDeclaration(categories: ["reply"]) { Like() }]
  configuration.delegate = Told()
}
let device = Device(configuration, on: loop) { continuation.yield($0) }
do throws(DeviceError) {
  try await device.start()
} catch {
  line("error \(error.code.rawValue)\n\(error)")
  exit(1)
}
try await device.userNotificationCenter.add(
  NotificationRequest(identifier: "tea", content: NotificationContent(body: "It is ready")))
line("added")
loop: for await event in events {
  switch event {
  case .shown(let notification), .updated(let notification):
    line("shown \(notification.id)")
    guard notification.identifier == "b" else { break }
    if likes { try await device.expand("b") }
    line("responded \(try await likes ? device.respond(to: "b", action: "like") : device.open("b"))")
  case .failed(let error):
    line("error \(error.code.rawValue)\n\(error)")
    exit(1)
  case .removed: if !likes { break loop }
  case .panelClosed: break loop
  default: break
  }
}
await device.close()
line("steps \(killing_disk_steps())")
