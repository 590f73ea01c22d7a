import Notifications
import Worker

extension SettingKind where Value == String {
  /// Whom a request is for.
  static var target: SettingKind {
    SettingKind(
      placeholder: "TARGET", allowed: "device:TOKEN or user:ID",
      read: { text in
        if text.hasPrefix("device:") { return DeviceToken(String(text.dropFirst(7))).map { "device:\($0)" } }
        return text.hasPrefix("user:") && text.count > 5 ? text : nil
      }, write: { $0 })
  }
}
