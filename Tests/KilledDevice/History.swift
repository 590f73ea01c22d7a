import DeviceClient
import EventLoop
import Glibc
import KillingDisk
import Notifications

/// A device that adds, updates, opens and removes local notifications with files: `KilledDevice URL TOKEN STATE-FILE STEP history`. It is
/// killed at the step of its database and its folder that it was told; 0 is none. The file with the state file's name and `-history` has a
/// line for each step: `add`, `open` or `remove`, the identifier, and the program's file. An empty line ends a round, whose steps run at the
/// same time. What it does is a line each on standard output.
enum History {
  static func run(_ url: String, _ token: DeviceToken, _ path: String, step: Int) async throws(DeviceError) {
    let rounds = read(path + "-history").split(separator: "", omittingEmptySubsequences: true)
    killing_device_begin(step)
    var configuration = DeviceConfiguration(
      url: url, hello: Hello(device: token, application: "com.example.shop", authorization: Authorization(status: .authorized)))
    configuration.stateFile = path
    let device = Device(configuration, on: EventLoop(name: "device")) { _ in }
    try await device.start()
    for round in rounds {
      line("round")
      await withTaskGroup { group in
        for step in round {
          group.addTask {
            do throws(DeviceError) { try await take(step, device) } catch { line("error \(error)") }
          }
        }
      }
      // Removals do not wait for the database.
      try await device.userNotificationCenter.setBadgeCount(1)
    }
    await device.close()
    line("steps \(killing_disk_steps())")
  }

  private static func take(_ step: String, _ device: Device) async throws(DeviceError) {
    let words = step.split(separator: " ").map(String.init)
    let (identifier, path) = (Name(words[1]), words[2])
    switch words[0] {
    case "add":
      let attachments = path == "-" ? [] : [AttachmentSource(identifier: "photo", path: path)]
      try await device.userNotificationCenter.add(
        NotificationRequest(identifier: identifier, content: NotificationContent(title: "Tea"), attachments: attachments))
    case "remove": await device.remove([identifier])
    default:
      guard await device.delivered.contains(where: { $0.identifier == identifier && !$0.attachments.isEmpty }) else { return }
      do { try await device.withAttachment("photo", of: identifier) { _ in } } catch { line("error \(error)") }
    }
  }

  /// The lines of a file.
  private static func read(_ path: String) -> [String] {
    guard let file = fopen(path, "r") else { preconditionFailure("there is no history at \(path)") }
    defer { fclose(file) }
    var (lines, buffer): ([String], [CChar]) = ([], [CChar](repeating: 0, count: 4_096))
    while fgets(&buffer, Int32(buffer.count), file) != nil {
      lines.append(String(decoding: buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
    return lines
  }
}
