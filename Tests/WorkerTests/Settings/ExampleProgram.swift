import EventLoop
import Foundation
import Testing
import Worker

/// A small program with a setting of each kind.
enum ExampleProgram {
  enum Format: String, CaseIterable, Sendable { case text, json }

  static let kafka = Setting("kafka", .addresses, default: [SocketAddress(host: "127.0.0.1", port: 9092)], "Kafka's bootstrap servers.")
  static let properties = PassedOnSettings(prefix: "kafka", "A property of librdkafka, passed on as it is.") { !$0.hasSuffix("port") }
  static let window = Setting("fanout.window", .integer(1...1024), default: 32, "Notifications unacknowledged at most per session.")
  static let outbox = Setting("fanout.outbox", .size(1024...(1 << 20)), default: 65536, "Bytes that a session may have waiting.")
  static let hello = Setting("fanout.hello", .duration(.milliseconds(100)...(.seconds(60))), default: .seconds(10), "Time for the hello.")
  static let compress = Setting("fanout.compress", .boolean, default: true, "Compresses frames.")
  static let json = Setting("json", .boolean, default: false, "One JSON object per line.")
  static let format = Setting("log.format", flag: "log-format", .choice, default: Format.text, "How log lines look.")
  static let password = Setting("redis.password", .string("TEXT"), isSecret: true, "Redis' password.")
  static let pin = Setting("redis.pin", .integer(1000...9999), default: 1234, isSecret: true, "A secret number.")
  static let listen = Setting("fanout.listen", .address, default: SocketAddress(host: "0.0.0.0", port: 8080), "Where devices connect.")
  static let tags = Setting("publish.tags", flag: "tag", .repeated(.string("TAG")), default: [], "Tags of the notification.")
  static let target = Setting.required("publish.target", .string("TARGET"), "Whom it is for.")
  static let identifier = Argument("APNS-ID", "The notification's id.")
  static let files = Argument("FILE", "Files to read.", count: .many)

  static let everywhere = SettingGroup("Kafka and Redis", [kafka, properties, password], advanced: [pin])

  static let program = CommandLineProgram(
    name: "carillon", summary: "delivers notifications", version: "1.2.3",
    sections: [
      .init(
        "Roles",
        [
          Command(
            "fan-out", "holds the connections of devices and delivers to them",
            discussion: "Runs until it is told to end; then it tells each device when to reconnect, and drains.",
            groups: [
              SettingGroup("Sessions", [window, outbox, hello, compress, listen]), SettingGroup("Log", [], advanced: [format]), everywhere,
            ],
            examples: [Example("fan-out --window 64", "with twice the window")]
          ) { _ in .done }
        ]),
      .init(
        "Tools",
        [
          Command("publish", "publishes a notification", groups: [SettingGroup("Notification", [target, tags]), everywhere]) { _ in .done },
          Command("explain", "prints a timeline", arguments: [identifier], groups: [SettingGroup("Output", [json]), everywhere]) { _ in
            .done
          },
          Command("topics create", "creates the topics", groups: [everywhere]) { _ in .done },
          Command(
            "move", "moves a partition",
            arguments: [
              Argument("TOPIC", "The topic."), Argument("PARTITION", "Its partition."), Argument("TO", "Where to.", count: .optional),
            ],
            groups: [everywhere]
          ) { _ in .done },
          Command("check", "checks files", arguments: [files], groups: [everywhere]) { _ in .answerIsNo },
        ]),
    ])

  /// Understands a line with an environment, and with a configuration file in it when `file` is given.
  static func parse(_ line: String, environment: [String: String] = [:], file: String? = nil) throws -> SettingValues {
    var arguments = line.split(separator: " ").map(String.init)
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("carillon-\(UUID().uuidString).conf").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    if let file {
      try file.write(toFile: path, atomically: true, encoding: .utf8)
      arguments += ["--config", path]
    }
    guard case .run(_, let values) = try program.parse(arguments, environment: environment) else {
      throw UsageError(.unknownCommand, "not a command to run")
    }
    return values
  }

  /// The mistake in a line, with the temporary file's path as `FILE`.
  static func mistake(_ line: String, environment: [String: String] = [:], file: String? = nil) -> UsageError? {
    do {
      _ = try parse(line, environment: environment, file: file)
      return nil
    } catch var error as UsageError {
      error.description = error.description.replacing(#/\/[^ ]*carillon-[^ ]*\.conf/#, with: "FILE")
      return error
    } catch {
      Issue.record(error)
      return nil
    }
  }
}
