import EventLoop
import FanOut
import JSON
import Notifications
import Worker

/// `carillon token` and `carillon token key`.
enum TokenCommand {
  private static let token = Setting<DeviceToken>.required("token.token", .deviceToken, "The device's token.")
  private static let app = Setting<Name>.required("token.app", .name("BUNDLE-ID"), "The application.")
  private static let user = Setting<Name?>("token.user", .name("ID"), "The person of the device. Absent: nobody.")
  private static let expires = Setting(
    "token.expires", .duration(.seconds(1)...(.seconds(3650 * 86_400))), default: .seconds(30 * 86_400), "How long it is valid.")
  private static let key = Setting<String>.required("token.key", .file, "The cluster's key: see 'carillon token key'.")

  static let command = Command(
    "token", "prints a credential for a device",
    discussion:
      "The credential names the device, the user and the application that may connect; 'carillon fan-out --key-file' with the same key accepts it. It is a JSON Web Token (HS256) with the claims sub, app, user, iat and exp, so any backend can make it as well.",
    groups: [SettingGroup("Credential", [token, app, user, expires, key]), AnswerSettings.group],
    examples: [
      Example("token --token $(printf '0%.0s' $(seq 64)) --app com.example.shop --user ada --key cluster.key", "for a device of ada's")
    ]
  ) { values in
    let key = try ClusterKey(values.file(key, limit: ClusterKey.fileBytes))
    if let file = key.exposedFile { StandardError.line("\(ClusterKey.exposure) \(file)") }
    let now = WallClock.seconds()
    let credential = Credential(
      device: values[token].text, application: values[app], user: values[user],
      expiration: now + Int64(values[expires].wholeMilliseconds / 1000))
    let text = credential.sign(key: key.bytes, now: now)
    guard values[AnswerSettings.json] else {
      StandardOutput.line(text)
      return .done
    }
    StandardOutput.json(JSONValue.object(["credential": text, "expires": Timestamp.text(credential.expiration * 1000)]).text)
    return .done
  }

  private static let file = Argument("FILE", "The file to make. An existing one is left as it is.", completion: .file)

  static let createKey = Command(
    "token key", "makes a key for credentials", discussion: "32 random bytes in base64url, in a file that only its owner can read (0600).",
    arguments: [file], groups: [],
    examples: [Example("token key cluster.key", "for 'carillon fan-out --key-file' and 'carillon token --key'")]
  ) { values in
    try ClusterKey.create(values[file][0])
    return .done
  }
}
