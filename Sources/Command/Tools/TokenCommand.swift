import EventLoop
import FanOut
import Ingress
import JSON
import Notifications
import Worker

/// `carillon token`, `carillon token publisher` and `carillon token key`.
enum TokenCommand {
  private static let token = Setting<DeviceToken>.required("token.token", .deviceToken, "The device's token.")
  private static let app = Setting<Name>.required("token.app", .name("BUNDLE-ID"), "The application.")
  private static let user = Setting<Name?>("token.user", .name("ID"), "The person of the device. Absent: nobody.")
  private static let expires = Setting(
    "token.expires", .duration(.seconds(1)...(.seconds(3650 * 86_400))), default: .seconds(30 * 86_400), "How long it is valid.")
  private static let key = Setting<String>.required(
    "token.key", .file,
    "The cluster's key file, or for a publisher one of the ingress: see 'carillon token key'. The key of its first line signs.")

  static let command = Command(
    "token", "prints a credential for a device",
    discussion:
      "The credential names the device, the user and the application that may connect; 'carillon fan-out --key-file' with the same key accepts it. It is a JSON Web Token (HS256) whose header names the key (kid), with the claims sub, app, user, iat and exp, so any backend can make it as well.",
    groups: [SettingGroup("Credential", [token, app, user, expires, key]), AnswerSettings.group],
    examples: [
      Example("token --token $(printf '0%.0s' $(seq 64)) --app com.example.shop --user ada --key cluster.key", "for a device of ada's")
    ]
  ) { values in
    let key = try SecretFile.signing(values.file(key, limit: SecretFile.fileBytes))
    let now = WallClock.seconds()
    let credential = Credential(
      device: values[token].text, application: values[app], user: values[user],
      expiration: now + Int64(values[expires].wholeMilliseconds / 1000))
    return print(credential.sign(key: key, now: now), named: "credential", expiration: credential.expiration, values)
  }

  private static func print(_ text: String, named name: String, expiration: Int64, _ values: SettingValues) -> ExitCode {
    guard values[AnswerSettings.json] else {
      StandardOutput.line(text)
      return .done
    }
    StandardOutput.json(
      JSONValue.object([JSONValue.Member(name, text), JSONValue.Member("expires", Timestamp.text(expiration * 1000))]).text)
    return .done
  }

  private static let apps = Setting<[Name]>.required(
    "token.apps", .repeated(.name("BUNDLE-ID,…")), "The applications that it may publish for; * for all.")
  private static let targets = Setting<[PublisherToken.TargetKind]>(
    "token.targets", .repeated(.choice), default: PublisherToken.TargetKind.allCases, "The kinds of target.")
  private static let operations = Setting<[PublisherToken.Operation]>(
    "token.operations", .repeated(.choice), default: PublisherToken.Operation.allCases, "The operations.")
  private static let name = Setting<Name?>("token.name", .name("NAME"), "The publisher's name in the access log.")

  static let publisher = Command(
    "token publisher", "prints a token for a publisher",
    discussion:
      "The token names the applications, the kinds of target and the operations for which its bearer may publish by HTTP; 'carillon ingress --key-file' with the same key accepts it. It is a JSON Web Token (HS256) with the claims aud (carillon-publish), apps, targets, operations, sub, iat and exp, so any backend can make it as well, by ES256 or EdDSA too.",
    groups: [SettingGroup("Token", [apps, targets, operations, name, expires, key]), AnswerSettings.group],
    examples: [Example("token publisher --apps com.example.shop --key publishers.key", "for the backend of a shop")]
  ) { values in
    let key = try SecretFile.signing(values.file(key, limit: SecretFile.fileBytes))
    let now = WallClock.seconds()
    let expiration = now + Int64(values[expires].wholeMilliseconds / 1000)
    let token = PublisherToken(
      applications: values[apps], targets: values[targets], operations: values[operations], publisher: values[name], expiration: expiration)
    return print(token.sign(key: key, now: now), named: "token", expiration: expiration, values)
  }

  private static let file = Argument("FILE", "The file to make. An existing one is left as it is.", completion: .file)

  static let createKey = Command(
    "token key", "makes a key for credentials",
    discussion:
      "32 random bytes in base64url, in a file that only its owner can read (0600). A key file may have several, one in a line: the first signs, and each verifies. So a key is replaced without a restart: add the new one as the second line, and when all workers have read it, make it the first.",
    arguments: [file], groups: [],
    examples: [Example("token key cluster.key", "for 'carillon fan-out --key-file' and 'carillon token --key'")]
  ) { values in
    try SecretFile.create(values[file][0])
    return .done
  }
}
