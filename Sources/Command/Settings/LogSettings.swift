import Worker

/// The settings of a role's log.
enum LogSettings {
  static let level = Setting("log.level", flag: "log-level", .choice, default: LogLevel.info, "Lines below this level are not logged.")
  static let format = Setting(
    "log.format", flag: "log-format", .choice, default: LogFormat.text,
    "Text for people, or one JSON object a line. Logs go to standard error.")

  static let group = SettingGroup("Log", [level], advanced: [format])

  static func writer(_ values: SettingValues, defaultLevel: LogLevel = .info) -> LogWriter {
    LogWriter(level: values.source(of: level) == .standard ? defaultLevel : values[level], format: values[format])
  }
}
