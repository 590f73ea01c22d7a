import DeviceClient
import EventLoop
import Glibc
import KillingDisk
import Notifications
import Synchronization

/// A locked phone and its watch in one process: `KilledDevice URL TOKEN STATE-FILE STEP pair`. Both are killed at the step of their disks that
/// the process was told; 0 is none. What each shows is a line on standard output. They leave when the watch has shown two.
enum Pair {
  /// The program's channel, whose messages may overtake each other.
  private final class Channel: Sendable {
    let devices = Mutex<(phone: Device?, watch: Device?)>((nil, nil))

    func end(of side: WatchConnectivity.Side) -> WatchConnectivity {
      WatchConnectivity(side) { data in
        let devices = self.devices.withLock { $0 }
        let other = side == .phone ? devices.watch : devices.phone
        Task { await other?.didReceiveMessageData(data) }
      }
    }
  }

  static func run(_ url: String, _ token: DeviceToken, _ path: String, step: Int) async throws(DeviceError) {
    killing_disk_begin(step)
    let (forwarded, continuation) = AsyncStream.makeStream(of: Name.self, bufferingPolicy: .bufferingOldest(1_000))
    let channel = Channel()
    func device(_ side: WatchConnectivity.Side, _ name: String) -> Device {
      var configuration = DeviceConfiguration(
        url: url, hello: Hello(device: token, application: "com.example.shop", authorization: Authorization(status: .authorized)))
      (configuration.stateFile, configuration.watchConnectivity) = ("\(path)-\(name)", channel.end(of: side))
      configuration.watchConnectivity?.leaseMilliseconds = 60_000
      configuration.state = side == .phone ? .locked : .foreground
      return Device(configuration, on: EventLoop(name: name)) { event in
        switch event {
        case .shown(let notification), .updated(let notification): line("\(name) \(notification.id)")
        case .forwarded(let notification): continuation.yield(notification.identifier)
        default: break
        }
      }
    }
    let (watch, phone) = (device(.watch, "watch"), device(.phone, "phone"))
    channel.devices.withLock { $0 = (phone, watch) }
    try await watch.start()
    try await phone.start()
    var count = 0
    for await _ in forwarded {
      count += 1
      if count == 2 { break }
    }
    await phone.close()
    await watch.close()
    line("steps \(killing_disk_steps())")
  }
}
