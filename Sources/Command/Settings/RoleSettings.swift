import EventLoop
import Notifications
import Worker

/// The settings of a process of any role.
enum RoleSettings {
  static let lanes = Setting(
    "lanes", .integer(1...256), default: 1,
    "Lanes in this process: each is one thread with its own connections. One for each core that it may use.")
  static let admin = Setting(
    "admin", .address, default: SocketAddress(host: "127.0.0.1", port: 0),
    "Where /metrics, /livez and /readyz are; port 0 takes a free one, which the log shows.")
  static let drain = Setting(
    "drain", .duration(.zero...(.seconds(3600))), default: .seconds(25),
    "How long the process may take to finish its work and end after SIGTERM or SIGINT. A second signal ends it at once.")
  static let worker = Setting<Name?>(
    "worker", .name("NAME"),
    "The name of this process in events and logs, unique in the cluster. A transform worker takes its place in the group by it again when it is restarted. Absent: its host and process id."
  )

  static let process = SettingGroup("Process", [lanes, admin, drain, AnswerSettings.json], advanced: [worker])
}
