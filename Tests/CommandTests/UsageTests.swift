import EventLoop
import Foundation
import JSON
import Redis
import TestSupport
import Testing
import Worker

@testable import Command

/// What the command line promises to the person who types, and to the shell.
@Suite struct UsageTests {
  static let commands = Program.commandLine.commands.map(\.name)

  @Test func theHelpListsEveryCommand() async throws {
    try await CarillonCommand.with { carillon in
      let help = try await carillon.run(["--help"])
      #expect(help.status == 0)
      #expect(help.errors.isEmpty)
      for command in Self.commands { #expect(help.output.contains("\n  \(command) "), "no '\(command)' in the help") }
    }
  }

  @Test(arguments: commands) func everyCommandHasHelpWithItsSettings(command: String) throws {
    let help = try Typed.printed(Self.words(command) + ["--help"])
    #expect(help.hasPrefix("carillon \(command): "))
    #expect(help.contains("\nUsage: carillon \(command)"))
    #expect(help.contains("\nExamples\n"))
    #expect(help.split(separator: "\n").allSatisfy { $0.count <= 140 || $0.contains("carillon") })
  }

  private static func words(_ command: String) -> [String] { command.split(separator: " ").map(String.init) }

  /// Nobody reads more than two screens to learn how a command is called.
  @Test(arguments: commands) func theShortHelpIsShortAndTheCompleteOneHasEverySetting(command: String) throws {
    let short = try Typed.printed(Self.words(command) + ["--help"])
    #expect(short.split(separator: "\n", omittingEmptySubsequences: false).dropLast().count <= 60)
    #expect(short.contains("\n  --help-all "))
    let complete = try Typed.printed(Self.words(command) + ["--help-all"])
    for row in Typed.program.settingsMarkdown.split(separator: "\n")
    where row.hasPrefix("| `") && (row.contains("| all |") || row.split(separator: "|").last?.contains("`\(command)`") == true) {
      let flag = try #require(row.firstMatch(of: /`(--[^`]+)`/)?.1)
      #expect(complete.contains("\n  \(flag)"), "no \(flag)")
    }
    #expect(try Self.everything.contains(complete))
  }

  @Test func `an error about a flag names the help that has the flag`() async throws {
    for (arguments, help) in [
      (["load", "--seed", "x"], "--help-all"), (["load", "--p99", "x"], "--help"), (["publish", "--trigger"], "--help"),
      (["publish", "--priority"], "--help-all"),
    ] {
      let error = #expect(throws: UsageError.self) { try Typed.parse(arguments) }
      let line = try #require(error.flatMap(Typed.program.help(for:)))
      #expect(line == "'carillon \(arguments[0]) \(help)' says what it takes", "\(arguments)")
    }
  }

  private static var everything: String { get throws { try Typed.printed(["--help-all"]) } }

  @Test func theVersionIsPrinted() throws {
    let version = try Typed.printed(["--version"])
    #expect(version.hasPrefix("carillon ") && version.split(separator: "\n", omittingEmptySubsequences: false).count == 2)
    #expect(try Typed.printed(["--help"]).contains("\n  --version "))
  }

  @Test func theSettingsAreATable() async throws {
    try await CarillonCommand.with { carillon in
      let table = try await carillon.run(["settings"])
      #expect(table.status == 0 && table.errors.isEmpty)
      #expect(table.output == Typed.program.settingsMarkdown)
      #expect(table.output.contains("| `kafka` | `--kafka` | `CARILLON_KAFKA` |"))
      #expect(table.output.contains("| `fanout.window` | `--window` | `CARILLON_FANOUT_WINDOW` | `32` |"))
    }
  }

  @Test(arguments: [
    (#"exec "$0" publish --app com.example --title x --dry-run --target $'user:\xff'"#, "argument 8 is not UTF-8"),
    (
      #"CARILLON_PUBLISH_TARGET=$'user:\xfe' exec "$0" publish --app com.example --title x --dry-run"#,
      "CARILLON_PUBLISH_TARGET is not UTF-8"
    ),
  ])
  func `what is not UTF-8 is refused, and not repaired to another name`(_ line: String, _ text: String) async throws {
    try await CarillonCommand.with { carillon in
      let refused = try await carillon.run(["-c", line, CarillonCommand.program.path], program: URL(fileURLWithPath: "/bin/bash"))
      #expect(refused.status == 2 && refused.output.isEmpty && refused.errors.contains(text), "it said: \(refused.errors)")
    }
  }

  /// The flags of ports that somebody has taken, with the lines that name them last.
  private static let taken = [
    ["up", "--new", "--listen", "ADDRESS"], ["up", "--new", "--kafka-port", "PORT"],
    ["transform", "--kafka", "127.0.0.1:1", "--redis", "127.0.0.1:1", "--admin", "ADDRESS"],
  ]
  private static let furtherTaken = [
    ["up", "--new", "--admin", "ADDRESS"], ["up", "--new", "--redis-port", "PORT"],
    ["up", "--new", "--media", "FOLDER", "--media-listen", "ADDRESS"],
    ["fan-out", "--kafka", "127.0.0.1:1", "--redis", "127.0.0.1:1", "--media", "FOLDER", "--media-listen", "ADDRESS"],
  ]

  @Test(arguments: taken + (isComplete ? furtherTaken : []))
  func aPortThatIsTakenIsToldByItsFlag(_ words: [String]) async throws {
    let loop = EventLoop(name: "taken")
    let listener = Taken(loop)
    try await listener.open()
    let address = await listener.address
    try await CarillonCommand.with { carillon in
      let meant = ["ADDRESS": address.description, "PORT": String(address.port), "FOLDER": carillon.folder.path]
      let line = words.map { meant[$0] ?? $0 }
      let refused = try await carillon.run(line)
      #expect(refused.status == 2)
      #expect(
        refused.errors.contains("carillon: \(words[words.count - 2]): listen at \(address): address already in use"),
        "it said: \(refused.errors)")
    }
    await listener.close()
    await loop.close()
  }

  /// A port that somebody listens at.
  private actor Taken: LoopActor {
    nonisolated let loop: EventLoop
    private var listener: Listener?
    var address: SocketAddress { listener?.localAddress ?? SocketAddress(host: "127.0.0.1", port: 0) }

    init(_ loop: EventLoop) { self.loop = loop }

    func open() throws {
      listener = try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { $0.close() }
    }

    func close() { listener?.close() }
  }

  /// What is typed, and what standard error must say of it.
  static let mistakes: [([String], String)] = [
    ([], "which command?"),
    (["pubish"], "did you mean 'publish'?"),
    (["topics"], "'topics' needs one more word: topics create"),
    (["publish", "--tittle", "x"], "did you mean '--title'?"),
    (["events", "--limit", "0"], "--limit: '0' is not allowed"),
    (["events", "--from", "yesterday"], "--from: 'yesterday' is not allowed"),
    (["events", "--type", "deliverd"], "--type: 'deliverd' is not allowed"),
    (["events", "--device", "12"], "--device: '12' is not allowed"),
    (["transform", "--lanes", "none"], "--lanes: 'none' is not allowed"),
    (["transform", "--admin", "nowhere"], "--admin: 'nowhere' is not allowed"),
    (["fan-out", "--drain", "5"], "--drain: '5' is not allowed"),
    (["publish", "--custom", "aps={}"], "--custom: 'aps={}' is not allowed"),
    (["publish", "--expiration", "soon"], "--expiration: 'soon' is not allowed"),
    (["token", "--app", "a"], "--token TOKEN is missing"),
    (["token", "key"], "'token key' needs FILE"),
    (["publish", "--config", "/nowhere/at/all"], "--config: /nowhere/at/all cannot be read"),
    (["publish", "--target", "user:ada", "--app", "a", "--payload", "/nowhere"], "--payload: /nowhere cannot be read"),
    (["publish", "--app", "a", "--lines", "/nowhere", "--dry-run"], "--lines: /nowhere cannot be read"),
  ]

  @Test(arguments: mistakes) func wrongUsageIsExplainedAndEndsWithTwo(arguments: [String], text: String) async throws {
    let refusal = try await Typed.refusal(arguments)
    #expect(refusal.code == .wrongUsage && refusal.text.contains(text), "it says: \(refusal.text)")
  }

  @Test func `a process that is called wrong says so on standard error alone, and names the help`() async throws {
    try await CarillonCommand.with { carillon in
      for (arguments, errors) in [
        ([], "carillon: which command? 'carillon --help' lists them\n"),
        (
          ["publish", "--tittle", "x"],
          "carillon: 'publish' has no flag '--tittle'; did you mean '--title'?\n'carillon publish --help' says what it takes\n"
        ),
      ] {
        let result = try await carillon.run(arguments)
        #expect(result.status == 2 && result.output.isEmpty && result.errors == errors, "it said: \(result.errors)")
      }
    }
  }

  /// Lines whose errors repeat what was typed.
  private static let typed = [
    ["TEXT"], ["publish", "--target", "user:ada", "--app", "a", "--payload", "/TEXT"], ["events", "--config", "FILE"],
  ]
  private static let furtherTyped = [
    ["events", "--type", "TEXT"], ["events", "--TEXT"], ["events", "TEXT"], ["explain", "TEXT"], ["dead-letters", "show", "TEXT"],
    ["completion", "TEXT"], ["publish", "--config", "/TEXT"],
    ["publish", "--app", "a", "--lines", "/TEXT", "--dry-run"], ["extensions", "check", "/TEXT"], ["token", "key", "/no/TEXT"],
    ["applications", "stop", "TEXT", "--kafka", "127.0.0.1:1"], ["device", "--devices", "ws://TEXT", "--token", "00", "--app", "a"],
    ["events", "--kafka", "TEXT"], ["transform", "--kafka", "127.0.0.1:1", "--redis", "TEXT"], ["replay", "--id", "TEXT", "--from", "1h"],
  ]

  /// In every kind of error: paths of files that cannot be read and names in files among them.
  @Test(arguments: typed + (isComplete ? furtherTyped : []))
  func `no error writes to the terminal what was typed as it is`(_ words: [String]) async throws {
    try await CarillonCommand.with { carillon in
      let typed = "x\u{1B}]0;stolen\u{7}\u{9B}2J\u{202E}y\u{200B}"
      let file = try carillon.file("carillon.conf", "\(typed) = 1\n")
      let line = words.map { $0 == "FILE" ? file : $0.replacing("TEXT", with: typed) }
      let result = try await carillon.run(line)
      #expect(result.status == 2, "\(words): \(result.status)")
      let shown = result.errors.replacing("\n", with: "")
      #expect(!shown.isEmpty && shown.unicodeScalars.allSatisfy(PrintedText.isVisible), "\(words): \(PrintedText.escaped(result.errors))")
    }
  }

  @Test(
    arguments: ["publish", "transform"]
      + (isComplete ? ["events", "topics create", "fan-out", "applications list", "dead-letters list"] : []))
  func withoutAClusterItSaysWhatToStart(command: String) async throws {
    try await CarillonCommand.with { carillon in
      var arguments = command.split(separator: " ").map(String.init)
      if command == "publish" { arguments += ["--target", "user:ada", "--app", "com.example", "--body", "x"] }
      let result = try await carillon.run(arguments)
      #expect(result.status == 2)
      #expect(result.errors.contains("start 'carillon up' on this machine, or give --kafka"))
    }
  }

  @Test(arguments: [["--kafka", "127.0.0.1:1"], ["--redis", "127.0.0.1:1"]])
  func oneOfKafkaAndRedisIsNotMixedWithWhatRunsHere(arguments: [String]) async throws {
    let refusal = try await Typed.refusal(["transform"] + arguments)
    #expect(refusal.code == .wrongUsage && refusal.text.contains("give both, or neither"), "it says: \(refusal.text)")
  }

  @Test(arguments: [
    ("redis://h:1", ["--redis-ca", "GOOD"], "begins with rediss://"),
    ("rediss://h:1", ["--redis-ca", "BAD"], "--redis-ca: it holds no certificate"),
    ("rediss://h:1", ["--redis-certificate", "GOOD"], "give --redis-certificate and --redis-key together"),
    ("rediss://h:1", ["--redis-certificate", "BAD", "--redis-key", "GOOD"], "--redis-certificate: BAD: it holds no certificate"),
  ])
  func filesOfTLSThatRedisCannotTakeAreRefused(_ address: String, _ flags: [String], _ reason: String) async throws {
    let certificates = try await TestCertificates.shared.value
    try await CarillonCommand.with { carillon in
      let files = ["GOOD": try carillon.file("ca.pem", certificates.authority), "BAD": try carillon.file("bad.pem", "nothing")]
      let words = flags.map { files[$0] ?? $0 }
      let refusal = try await Typed.refusal(["transform", "--kafka", "127.0.0.1:1", "--redis", address] + words)
      let expected = files.reduce(reason) { $0.replacing($1.key, with: $1.value) }
      #expect(refusal.code == .wrongUsage && refusal.text.contains(expected), "it says: \(refusal.text)")
    }
  }

  @Test func aFileOfAnUpThatIsGoneIsNotBelieved() async throws {
    try await CarillonCommand.with { carillon in
      let folder = carillon.folder.appendingPathComponent("carillon")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      // This process lives, but it began at another time.
      let text = """
        {"pid":\(getpid()),"began":1,"kafka":"127.0.0.1:1","redis":"redis://127.0.0.1:1","devices":"ws://127.0.0.1:1/v1/device","admin":"http://127.0.0.1:1"}
        """
      try Data(text.utf8).write(to: folder.appendingPathComponent("up.json"))
      let result = try await carillon.run(["events"])
      #expect(result.status == 2)
      #expect(result.errors.contains("start 'carillon up'"))
    }
  }

  @Test(arguments: [
    ["publish", "--target", "user:ada", "--app", "com.example", "--body", "x", "--timeout", "2s"], ["events"],
    ["topics", "create", "--timeout", "2s"], ["lag"], ["dead-letters", "list"], ["applications", "stop", "a.b"],
    ["load", "--fan-out", "ws://127.0.0.1:1"],
  ])
  func whereNobodyListensKafkaDoesNotAnswer(arguments: [String]) async throws {
    // The discard port, where nobody listens.
    let refusal = try await Typed.refusal(arguments + ["--kafka", "127.0.0.1:9"])
    #expect(refusal.code == .dependencyMissing && refusal.text.contains("Kafka does not answer at 127.0.0.1:9"), "it says: \(refusal.text)")
  }

  @Test func whatIsNoKafkaEndsWithThree() async throws {
    try await CarillonCommand.with { carillon in
      let web = HostileServer()
      let other = try await web.listen { _, _ in [Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8)] }
      let silent = try SilentListener()
      let further = [["explain", "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"], ["topics", "create", "--timeout", "2s"]]
      for line in [["audit"]] + (isComplete ? further : []) {
        // One that accepts and says nothing, and a web server.
        for address in ["127.0.0.1:\(silent.port)", "\(other)"] {
          let result = try await carillon.run(line + ["--kafka", address])
          #expect(result.status == 3 && result.output.isEmpty)
          #expect(result.errors.contains("Kafka does not answer at \(address)"), "it said: \(result.errors)")
        }
      }
      await web.close()
    }
  }

  @Test func aRebuildWithoutKafkaEndsWithThree() async throws {
    try await withRedis { redis in
      try await CarillonCommand.with { carillon in
        let result = try await carillon.run(["rebuild", "--kafka", "127.0.0.1:9", "--redis", redis.address.description])
        #expect(result.status == 3 && result.output.isEmpty)
        #expect(result.errors.contains("Kafka does not answer at 127.0.0.1:9"), "it said: \(result.errors)")
      }
    }
  }
}

/// A port of 127.0.0.1 where connections are accepted, by the system, and nobody says anything.
private final class SilentListener {
  let port: UInt16
  private let descriptor: Int32

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let isListening = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && listen(descriptor, 100) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    try #require(isListening)
    port = UInt16(bigEndian: address.sin_port)
  }

  deinit { close(descriptor) }
}
