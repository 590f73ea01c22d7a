import Foundation
import JSON
import TestSupport
import Testing

/// `carillon device` at a terminal where a person types.
@Suite struct TypedDeviceTests {
  private static let token = String(repeating: "e1", count: 32)
  /// A device that finds no cluster: its prompt is there all the same.
  private static let alone = ["device", "--devices", "ws://127.0.0.1:1", "--token", token, "--app", "com.example"]

  @Test(.onlyInAll("LineEditorTests have the line and what comes above it"))
  func `a notification comes above the line that is being typed, which is sent as it was typed`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(["up", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
      _ = try await up.firstLine()
      let terminal = try PseudoTerminal(width: 60)
      var screen = Screen(width: 60)
      let device = try carillon.start(
        ["device", "--token", Self.token, "--app", "com.example", "--user", "ada"], environment: ["NO_COLOR": "1", "TERM": "xterm"],
        streams: .init(input: terminal.terminal, output: terminal.terminal, errors: terminal.terminal))
      screen.take(try await terminal.read(until: "connected"))
      // The end of the text comes before its middle.
      try terminal.type("reply 1 you\u{1B}[D\u{1B}[D\u{1B}[Dthank ")
      screen.take(try await terminal.read(until: "thank you"))
      for number in 1...3 {
        let title = "Order \(number)\u{1B}[2J"
        let published = try await carillon.run([
          "publish", "--target", "user:ada", "--app", "com.example", "--title", title, "--category", "reply", "--collapse-id", "order",
        ])
        #expect(published.status == 0, "it said: \(published.errors)")
        var text = try await terminal.read(until: "Order \(number)")
        // The cursor is set after the line is drawn.
        if text.components(separatedBy: "Order \(number)").last?.contains("\u{1B}[16C") != true {
          text += try await terminal.read(until: "\u{1B}[16C")
        }
        screen.take(text)
        #expect(screen.rows.last == "> reply 1 thank you" && screen.column == 16, "\(screen.rows)")
        #expect(screen.rows.contains { $0.contains("Order \(number)") } && !screen.rows.dropLast().contains { $0.contains("thank") })
      }
      try terminal.type("\u{5}, 汉 ü\r")
      screen.take(try await terminal.read(until: "the cluster has the response"))
      // An earlier line comes back.
      try terminal.type("\u{1B}[A")
      screen.take(try await terminal.read(until: "> reply 1 thank you, 汉 ü"))
      let events = try await carillon.run(["events", "--from", "beginning", "--type", "response", "--limit", "1", "--json"])
      #expect(try events.lines.first.map { try JSONValue(parsing: $0)["userText"] } == .string("thank you, 汉 ü"))
      // In a line that is not empty Ctrl-D only deletes.
      try terminal.type("\u{15}\u{4}")
      #expect(try await device.result().status == 0)
      #expect(terminal.isEditingLines)
      try await up.stop()
    }
  }

  @Test(arguments: [("allow", "status authorized, alert on, sound on, badge on"), ("deny", "status denied")])
  func `a device that never asked asks at its terminal, and keeps the answer`(answer: String, settings: String) async throws {
    try await CarillonCommand.with { carillon in
      let terminal = try PseudoTerminal(width: 120)
      let state = carillon.folder.appendingPathComponent("state").path
      let flags = ["--authorization", "notDetermined", "--state", state]
      let device = try carillon.start(
        Self.alone + flags, environment: ["NO_COLOR": "1", "TERM": "xterm"],
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

  private static let ends = [("Ctrl-D", 0), ("SIGTERM", SIGTERM), ("SIGSEGV", SIGSEGV)]
  private static let furtherEnds = [("SIGINT", SIGINT), ("SIGHUP", SIGHUP), ("SIGQUIT", SIGQUIT), ("SIGABRT", SIGABRT)]

  @Test(arguments: ends + (isComplete ? furtherEnds : []))
  func `the terminal has its mode back after every end`(name: String, signal: Int32) async throws {
    try await CarillonCommand.with { carillon in
      let terminal = try PseudoTerminal(width: 80)
      let before = terminal.mode
      let device = try carillon.start(
        Self.alone, environment: ["SWIFT_BACKTRACE": "enable=no", "TERM": "xterm"],
        streams: .init(input: terminal.terminal, output: terminal.terminal))
      _ = try await terminal.read(until: "type help")
      #expect(!terminal.isEditingLines)
      try terminal.type(signal == 0 ? "\u{4}" : "half a line")
      if signal != 0 {
        _ = try await terminal.read(until: "half a line")
        device.signal(signal)
      }
      let status = try await device.result().status
      let isOrderly = [0, SIGTERM, SIGINT].contains(signal)
      #expect(status == (isOrderly ? 0 : 128 + signal), "\(name)")
      #expect(terminal.mode == before, "\(name)")
    }
  }

  /// dash leaves the terminal as a stopped job has left it.
  @Test func `Ctrl-Z gives the terminal to the shell, and fg takes it back with the line that was being typed`() async throws {
    try await CarillonCommand.with { carillon in
      let terminal = try PseudoTerminal(width: 80)
      let shell = try carillon.start(
        ["-c", "-w", "dash", "-i"], environment: ["PS1": "shell$ ", "TERM": "xterm", "ENV": ""],
        streams: .init(input: terminal.terminal, output: terminal.terminal, errors: terminal.terminal),
        program: URL(fileURLWithPath: "/usr/bin/setsid"))
      _ = try await terminal.read(until: "shell$ ")
      let before = terminal.mode
      let line = ([CarillonCommand.program.path] + Self.alone).joined(separator: " ")
      try terminal.type(line + "\n")
      _ = try await terminal.read(until: "type help")
      try terminal.type("half a")
      _ = try await terminal.read(until: "half a")
      #expect(!terminal.isEditingLines)
      try terminal.type("\u{1A}")
      _ = try await terminal.read(until: "shell$ ")
      #expect(terminal.mode == before)
      try terminal.type("fg\n")
      _ = try await terminal.read(until: "> half a")
      #expect(!terminal.isEditingLines)
      try terminal.type(" line")
      _ = try await terminal.read(until: "half a line")
      // In the background it does without the terminal.
      try terminal.type("\u{1A}")
      _ = try await terminal.read(until: "shell$ ")
      try terminal.type("bg\n")
      _ = try await terminal.read(until: "shell$ ")
      #expect(terminal.mode == before)
      try terminal.type("fg\n")
      _ = try await terminal.read(until: "> half a line")
      // Ctrl-C ends it, with the shell's prompt on a line of its own.
      try terminal.type("\u{3}")
      _ = try await terminal.read(until: "half a line\nshell$ ")
      #expect(terminal.mode == before)
      try terminal.type("exit 7\n")
      #expect(try await shell.result().status == 7)
    }
  }

  @Test func `without a terminal nothing is edited`() async throws {
    try await CarillonCommand.with { carillon in
      let terminal = try PseudoTerminal(width: 80)
      for (streams, flags) in [
        (CarillonCommand.Streams(output: terminal.terminal), []), (.init(input: terminal.terminal), []),
        (.init(input: terminal.terminal, output: terminal.terminal), ["--json"]),
      ] {
        let isJSON = flags.contains("--json")
        let device = try carillon.start(Self.alone + flags, environment: ["NO_COLOR": "1"], streams: streams)
        if streams.output == nil {
          _ = try await device.firstLine()
        } else {
          _ = try await terminal.read(until: isJSON ? "unreachable" : "type help")
        }
        #expect(terminal.isEditingLines)
        try await device.stop()
      }
      #expect(!terminal.read().contains("\u{1B}"))
    }
  }
}
