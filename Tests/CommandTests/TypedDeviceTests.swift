import Foundation
import JSON
import TestSupport
import Testing

/// `carillon device` at a terminal where a person types.
@Suite struct TypedDeviceTests {
  private static let token = String(repeating: "e1", count: 32)
  /// A device that finds no cluster: what is typed is carried out all the same.
  private static let alone = ["device", "--devices", "ws://127.0.0.1:1", "--token", token, "--app", "com.example"]

  @Test(arguments: [("allow", "status authorized, alert on, sound on, badge on"), ("deny", "status denied")])
  func `a device that never asked asks at its terminal, and keeps the answer`(answer: String, settings: String) async throws {
    try await CarillonCommand.with { carillon in
      let terminal = try PseudoTerminal(width: 120)
      let state = carillon.folder.appendingPathComponent("state").path
      let flags = ["--authorization", "notDetermined", "--state", state]
      let device = try carillon.start(
        Self.alone + flags, environment: ["NO_COLOR": "1"],
        streams: .init(input: terminal.terminal, output: terminal.terminal))
      _ = try await terminal.read(until: "com.example would like to show notifications: type allow or deny")
      // What is not an answer leaves the question open.
      try terminal.type("add early Tea\r")
      _ = try await terminal.read(until: "not taken (filtered): early")
      try terminal.type("\(answer)\rsettings\r")
      _ = try await terminal.read(until: settings)
      try terminal.type("\(answer)\r")
      _ = try await terminal.read(until: "nothing is asked at the moment")
      try await device.stop()
      let again = try await carillon.run(Self.alone + flags + ["--until-eof"], environment: ["NO_COLOR": "1"], input: "settings\n")
      #expect(again.output.contains(settings) && !again.output.contains("would like"), "\(again.output)")
    }
  }

  @Test func `a typed line is carried out, and the end of the input ends the run`() async throws {
    try await CarillonCommand.with { carillon in
      let terminal = try PseudoTerminal(width: 80)
      let device = try carillon.start(
        Self.alone, environment: ["NO_COLOR": "1"], streams: .init(input: terminal.terminal, output: terminal.terminal))
      _ = try await terminal.read(until: "type help")
      try terminal.type("listing\u{7F}\u{7F}\u{7F}\r")
      let text = try await terminal.read(until: "nothing is in the list")
      #expect(!text.contains("\u{1B}"), "\(text)")
      try terminal.type("\u{4}")
      #expect(try await device.result().status == 0)
    }
  }
}
