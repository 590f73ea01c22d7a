import DeviceClient
import EventLoop
import Extensions
import Glibc
import KillingDisk
import Notifications

/// A device that adds a local request, shows what comes, opens the notification `b`, and leaves: `KilledDevice URL TOKEN STATE-FILE STEP`.
/// It is killed at the step of its disk that it was told; 0 is none. What it shows and does is a line each on standard output.
///
/// With a fifth argument it does something else. It expands `b` and likes it there: `forwards` has a content extension that forwards the
/// response, `traps` one that traps. It shows two notifications that a service extension changes: `extends`, and `extension-traps`, whose
/// extension traps at `b`. It shows what another process has asked for: `commands`. It is a phone and its watch: `pair`. Its
/// folder of attachments fails: `attaches` and more. It takes the steps of a file: `history`.
func line(_ text: String) {
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

/// Names each notification that it is given.
private struct Naming: ServiceExtension {
  func didReceive(_ request: ExtensionRequest, _ bestAttempt: BestAttempt) async throws -> MutableContent {
    line("called \(request.identifier)")
    precondition(CommandLine.arguments.last != "extension-traps" || request.identifier != "b", "this extension has a defect")
    bestAttempt.update { $0.title = "Changed" }
    return bestAttempt.content
  }
}

/// The application, which tells what it takes.
private final class Told: UserNotificationCenterDelegate {
  func userNotificationCenter(
    _ center: UserNotificationCenter, willPresent notification: DeliveredNotification
  ) -> PresentationOptions { .all }

  func userNotificationCenter(_ center: UserNotificationCenter, didReceive response: NotificationResponse) async {
    line("told \(response.id)")
  }
}

let arguments = CommandLine.arguments
if arguments.count == 4, arguments[1] == "center", let step = Int(arguments[3]) {
  try await Center.run(arguments[2], step: step)
  exit(0)
}
let obeys = arguments.last == "commands"
let extends = arguments.count == 6 && ["extends", "extension-traps"].contains(arguments[5])
let likes = arguments.count == 6 && !extends && !obeys
guard [5, 6].contains(arguments.count), let token = DeviceToken(arguments[2]), let step = Int(arguments[4]) else { exit(2) }
if let fault = arguments.last.flatMap({ Attaches.faults[$0] }) {
  try await Attaches.run(arguments[1], token, arguments[3], step: step, fault)
  exit(0)
}
if arguments.last == "history" {
  try await History.run(arguments[1], token, arguments[3], step: step)
  exit(0)
}
if arguments.last == "pair" {
  try await Pair.run(arguments[1], token, arguments[3], step: step)
  exit(0)
}
// Root may write everything, so a test of permissions has another user.
if getenv("TESTS_AS_NOBODY") != nil, getuid() == 0 { _ = setuid(65_534) }
killing_disk_begin(step)

let (events, continuation) = AsyncStream.makeStream(of: DeviceEvent.self, bufferingPolicy: .bufferingOldest(1_000))
let loop = EventLoop(name: "device")
var configuration = DeviceConfiguration(
  url: arguments[1], hello: Hello(device: token, application: "com.example.shop", authorization: Authorization(status: .authorized)))
configuration.stateFile = arguments[3]
if likes {
  configuration.hello.categories = [
    NotificationCategory(identifier: "reply", actions: [NotificationAction(identifier: "like", title: "Like")])
  ]
  configuration.contentExtensions = [ContentExtensionDeclaration(categories: ["reply"]) { Like() }]
  configuration.delegate = Told()
}
if extends { configuration.serviceExtension = Naming() }
let device = Device(configuration, on: loop) { continuation.yield($0) }
do throws(DeviceError) {
  try await device.start()
} catch {
  line("error \(error.code.rawValue)\n\(error)")
  exit(1)
}
if !extends, !obeys {
  try await device.userNotificationCenter.add(
    NotificationRequest(identifier: "tea", content: NotificationContent(body: "It is ready")))
  line("added")
}
var shown = 0
loop: for await event in events {
  switch event {
  case .shown(let notification), .updated(let notification):
    line("shown \(notification.id)")
    shown += 1
    if obeys || extends && shown == 2 { break loop }
    guard !extends else { break }
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
