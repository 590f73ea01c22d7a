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

extension SettingKind where Value == DeviceToken {
  /// A device's token.
  static var deviceToken: SettingKind {
    SettingKind(
      placeholder: "TOKEN", allowed: "a device token: an even number of hexadecimal digits, 64 to 512", read: { DeviceToken($0) },
      write: \.text)
  }
}
