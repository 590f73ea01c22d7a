import DeviceClient
import Extensions
import HTTP
import JSON
import Notifications
import Worker

/// The settings of `carillon device`.
enum DeviceSettings {
  static let devices = Setting<[String]?>(
    "device.devices", .repeated(.deviceURL),
    "Where devices connect: wss://HOST:PORT/v1/device, or ws:// without TLS; the next is tried when one drains or fails. Absent: that of a 'carillon up' on this machine."
  )
  static let authorities = Setting<String?>(
    "device.ca", .file,
    "The certificates in PEM that the cluster's certificate must have been signed by. Absent: those that this machine trusts.")
  static let token = Setting<DeviceToken>.required("device.token", .deviceToken, "The device's token.")
  static let app = Setting<Name>.required("device.app", .name("BUNDLE-ID"), "The application.")
  static let user = Setting<Name?>("device.user", .name("ID"), "The person who is signed in. Absent: nobody.")
  static let credential = Setting<String?>(
    "device.credential", .string("TEXT"), isSecret: true,
    "The proof that the device may connect: see 'carillon token'. Give it by the environment or --credential-file, where others cannot see it."
  )
  static let credentialFile = Setting<String?>(
    "device.credential-file", .file, "The file with the credential; it is read again before each hello.")
  static let identity = SettingGroup("Device", [devices, authorities, token, app, user, credential, credentialFile])

  static let environment = Setting<DeviceEnvironment?>(
    "device.environment", .choice, "The environment of the token. Absent: none is sent.")
  static let locale = Setting<String?>("device.locale", .string("LOCALE"), "The locale, such as de_AT. Absent: none is sent.")
  static let authorization = Setting(
    "device.authorization", .choice, default: Authorization.Status.authorized,
    "The person's permission for notifications, until it is changed; --state keeps the change.")
  static let categories = Setting<String?>(
    "device.categories", .file,
    "The application's categories, as a JSON array. Absent: reply, with the actions reply, which takes text, and like."
  )
  static let registration = SettingGroup(
    "Registration", [], advanced: [environment, locale, authorization, categories])

  static let state = Setting<String?>(
    "device.state", .file, "The SQLite database that keeps its state after its end, also after a kill. Absent: its end loses the state.")
  static let acknowledges = Setting(
    "device.ack", .boolean, default: true, "Acknowledges notifications; --no-ack shows the cluster's reaction to missing acknowledgements.")
  static let connectTimeout = Setting<Duration?>(
    "device.connect-timeout", .duration(.milliseconds(100)...(.seconds(3600))),
    "Ends with exit code 3 after this time without a welcome. Absent: it tries without a limit.")
  static let untilEOF = Setting(
    "device.until-eof", .boolean, default: false, "Ends with standard input, also with --json or without a terminal.")
  static let extensions = Setting<String?>(
    "device.extensions", .file,
    "The file of service extensions: those of the application that run on the device change what it shows. Absent: notifications are shown as received."
  )
  static let behaviour = SettingGroup("Behaviour", [state, extensions, acknowledges, connectTimeout, untilEOF])

  /// Makes the configuration from the settings.
  static func configuration(_ values: SettingValues) throws -> DeviceConfiguration {
    guard let urls = values[devices] ?? RunningCluster.find().map({ [$0.devices] }), !urls.isEmpty else {
      throw UsageError(.missing, "no cluster: start 'carillon up' on this machine, or give --devices ws://HOST:PORT\(DeviceProtocol.path)")
    }
    let hello = Hello(
      device: values[token], application: values[app], credential: try credential(values), user: values[user], platform: "linux",
      environment: values[environment], locale: values[locale],
      authorization: Authorization(status: values[authorization], options: [.alert: true, .sound: true, .badge: true]),
      categories: try values.file(categories, limit: 1 << 20).map { try categories(in: $0) } ?? [sampleCategory])
    // The cluster would say the same, but only after a connection.
    do { _ = try hello.jsonBytes.withUnsafeBytes { try DeviceFrame($0) } } catch let error as DeviceFrameError {
      throw UsageError(.wrongValue, "the device cannot say hello like this: \(error.field): \(error.rule)")
    }
    var configuration = DeviceConfiguration(urls: urls, hello: hello)
    configuration.certificateAuthorities = try values.file(authorities, limit: 1 << 20)?.bytes
    if values[credentialFile] != nil { configuration.credential = { try? credential(values) } }
    configuration.stateFile = values[state]
    configuration.extensions = try chain(values)
    configuration.acknowledges = values[acknowledges]
    configuration.tracesFrames = values[AnswerSettings.json]
    return configuration
  }

  private static func chain(_ values: SettingValues) throws -> ExtensionChain? {
    guard let path = values[extensions] else { return nil }
    return try ExtensionsInForce.read(path, at: .device).chain(application: NameHash.hash(values[app]))
  }

  private static func credential(_ values: SettingValues) throws -> String? {
    guard let file = try values.file(credentialFile, limit: 65_536) else { return values[credential] }
    guard values[credential] == nil else { throw UsageError(.contradiction, "give --credential or --credential-file, not both") }
    let text = String(decoding: file.bytes, as: UTF8.self).filter { !$0.isWhitespace }
    guard !text.isEmpty else { throw UsageError(.wrongValue, "\(file.path) has no credential in it") }
    return text
  }

  /// The default category, so that there is something to try.
  private static let sampleCategory = NotificationCategory(
    identifier: "reply", options: [.customDismissAction],
    actions: [
      NotificationAction(identifier: "reply", title: "Reply", textInput: .init(buttonTitle: "Send", placeholder: "Your answer")),
      NotificationAction(identifier: "like", title: "Like"),
    ])

  private static func categories(in file: InputFile) throws -> [NotificationCategory] {
    do {
      let value = try file.bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
      return try DeviceShapes.categories(value["categories"] ?? value)
    } catch {
      throw UsageError(.wrongValue, "\(file.path): \(error)")
    }
  }
}

extension SettingKind where Value == String {
  /// A WebSocket URL. Without a path it gets that of the protocol.
  static var deviceURL: SettingKind {
    SettingKind(
      placeholder: "URL", allowed: "a URL such as ws://127.0.0.1:8080\(DeviceProtocol.path)",
      read: { text in
        guard let url = try? HTTPURL(text), url.scheme.isWebSocket else { return nil }
        return url.target == "/" ? "\(url.scheme.rawValue)://\(url.address)\(DeviceProtocol.path)" : text
      },
      write: { $0 })
  }
}
