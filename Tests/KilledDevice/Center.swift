import DeviceClient
import Glibc
import KillingDisk
import Notifications

/// The notification center in a process of its own: `KilledDevice center STATE-FILE STEP`. It is killed at the step of its disk that it was
/// told; 0 is none. What it has done is a line each on standard output.
enum Center {
  static func run(_ path: String, step: Int) async throws(DeviceError) {
    killing_disk_begin(step)
    let center = try await UserNotificationCenter.shared(in: path, application: "com.example.shop")
    func request(_ identifier: Name, _ trigger: NotificationTrigger? = nil) -> NotificationRequest {
      NotificationRequest(identifier: identifier, content: NotificationContent(title: "Tea"), trigger: trigger)
    }
    try await center.add(request("later", .timeInterval(3_600, repeats: false)))
    line("later")
    try await center.add(request("now"))
    line("now")
    try await center.removePendingNotificationRequests(withIdentifiers: ["old"])
    line("old")
    try await center.removeDeliveredNotifications(withIdentifiers: ["a"])
    line("a")
    try await center.setBadgeCount(5)
    line("badge")
    try await center.setNotificationCategories([NotificationCategory(identifier: "shared")])
    line("categories")
    await center.close()
    line("steps \(killing_disk_steps())")
  }
}
