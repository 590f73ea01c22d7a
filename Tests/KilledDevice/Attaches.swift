import DeviceClient
import EventLoop
import Glibc
import KillingDisk
import Notifications

/// A device that adds a local request with a file, and shows one of the cluster with an attachment: `KilledDevice URL TOKEN STATE-FILE STEP
/// attaches`. It is killed at the step of its folder of attachments that it was told; 0 is none. With `attaches-full` the disk is full from that
/// step on, and with `attaches-full-once` at that step. The program's file has the state file's name with `-photo` after it. What it does is a line each on standard output.
enum Attaches {
  /// The faults by the words of the command line.
  static let faults = ["attaches": KILLING_KILL, "attaches-full": KILLING_FULL, "attaches-full-once": KILLING_FULL_ONCE]

  static func run(_ url: String, _ token: DeviceToken, _ path: String, step: Int, _ fault: killing_fault) async throws(DeviceError) {
    killing_folder_begin(step, fault)
    let (events, continuation) = AsyncStream.makeStream(of: DeviceEvent.self, bufferingPolicy: .bufferingOldest(1_000))
    var configuration = DeviceConfiguration(
      url: url, hello: Hello(device: token, application: "com.example.shop", authorization: Authorization(status: .authorized)))
    configuration.stateFile = path
    let device = Device(configuration, on: EventLoop(name: "device")) { continuation.yield($0) }
    try await device.start()
    let center = device.userNotificationCenter
    let request = NotificationRequest(
      identifier: "tea", content: NotificationContent(title: "Tea"),
      attachments: [AttachmentSource(identifier: "photo", path: path + "-photo")])
    do throws(DeviceError) {
      try await center.add(request)
      line("added")
    } catch {
      line("refused \(error.code.rawValue)")
    }
    loop: for await event in events {
      switch event {
      case .attachmentMissing(_, _, let failure): line("missing \(failure.reason.rawValue)")
      case .shown(let notification) where notification.identifier == "one":
        line("shown \(notification.id)")
        break loop
      default: break
      }
    }
    line("removing")
    await device.remove(["tea"])
    try await center.setBadgeCount(1)
    await device.close()
    if let folder = opendir(path + "-attachments") {
      while let entry = readdir(folder) {
        line(
          "left \(withUnsafePointer(to: &entry.pointee.d_name) { String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self)) })"
        )
      }
      closedir(folder)
    }
    line("steps \(killing_folder_steps())")
  }
}
