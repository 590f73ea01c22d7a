import Notifications
import Worker

extension SettingKind where Value == Name {
  /// The recipient of a request.
  static var target: SettingKind {
    SettingKind(
      placeholder: "TARGET", allowed: "device:TOKEN or user:ID",
      read: { text in Name(text).withBytes { Target($0)?.name } })
  }
}

extension SettingKind where Value == DeviceToken {
  /// A device's token.
  static var deviceToken: SettingKind {
    SettingKind(
      placeholder: "TOKEN", allowed: "a device token: an even number of hexadecimal digits, 64 to 512", read: { DeviceToken($0) })
  }
}
