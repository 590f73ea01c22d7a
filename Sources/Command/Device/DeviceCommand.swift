import EventLoop
import Glibc
import Worker

/// `carillon device`.
enum DeviceCommand {
  static let command = Command(
    "device", "is a device: shows notifications, and reports what the person does with them",
    discussion:
      "Connects, stays connected, and shows notifications as they come; type help for the commands. The terminal edits the line; 'rlwrap carillon device' adds a history. With --json each frame of either direction and each event is a line on standard output, and each line on standard input is a command, such as {\"command\": \"open\", \"identifier\": \"order-7\"}.",
    groups: [DeviceSettings.identity, DeviceSettings.registration, DeviceSettings.behaviour, AnswerSettings.group],
    examples: [
      Example(
        "device --token $(printf '0%.0s' $(seq 64)) --app com.example.shop --user ada", "ada's device, at the 'carillon up' of this machine"
      ),
      Example(
        "device --devices ws://127.0.0.1:8080/v1/device --token … --app com.example.shop --state ada.state --json",
        "for a script, remembering over its end what it was given"),
    ]
  ) { try await run($0) }

  private static func run(_ values: SettingValues) async throws -> ExitCode {
    let isJSON = values[AnswerSettings.json]
    let loop = EventLoop(name: "device")
    let configuration = try DeviceSettings.configuration(values)
    let isTyped = !isJSON && isatty(STDIN_FILENO) == 1
    let canAsk = isTyped && isatty(STDOUT_FILENO) == 1
    let session = DeviceSession(
      configuration, .init(isJSON: isJSON, canAsk: canAsk, connectTimeout: values[DeviceSettings.connectTimeout]), on: loop)
    // Without a person at a terminal, the end of the input means nothing.
    let endsAtEOF = values[DeviceSettings.untilEOF] || isTyped
    let code = try await session.run { DeviceInput().begin(session, endsAtEOF: endsAtEOF) }
    await loop.close()
    return code
  }
}
