import Testing
import Worker

/// Each mistake is answered with where it stands, what was given and what is allowed.
@Suite struct UsageErrorTests {
  typealias Example = ExampleProgram

  @Test(arguments: [
    ("fan-out --window 0", UsageError.Code.wrongValue, "--window: '0' is not allowed: it must be a whole number from 1 to 1024"),
    ("fan-out --window x", .wrongValue, "--window: 'x' is not allowed: it must be a whole number from 1 to 1024"),
    (
      "fan-out --outbox 64XB", .wrongValue,
      "--outbox: '64XB' is not allowed: it must be a size from 1KiB to 1MiB, such as 64KiB or 1MiB"
    ),
    (
      "fan-out --outbox 99999999999999GiB", .wrongValue,
      "--outbox: '99999999999999GiB' is not allowed: it must be a size from 1KiB to 1MiB, such as 64KiB or 1MiB"
    ),
    (
      "fan-out --hello 5", .wrongValue,
      "--hello: '5' is not allowed: it must be a duration from 100ms to 1m, such as 500ms, 30s, 5m, 2h or 2d"
    ),
    ("fan-out --compress=maybe", .wrongValue, "--compress: 'maybe' is not allowed: it must be true or false"),
    ("fan-out --log-format xml", .wrongValue, "--log-format: 'xml' is not allowed: it must be one of text, json"),
    (
      "fan-out --listen nowhere", .wrongValue,
      "--listen: 'nowhere' is not allowed: it must be HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080"
    ),
    ("fan-out --kafka a:1,,b:2", .wrongValue, "--kafka: 'a:1,,b:2' is not allowed: it must be HOST:PORT, or several separated by commas"),
    ("fan-out --pin 12", .wrongValue, "--pin: '••••' is not allowed: it must be a whole number from 1000 to 9999"),
    ("fan-out --windw 3", .unknownFlag, "'fan-out' has no flag '--windw'; did you mean '--window'?"),
    ("fan-out --widnow=3", .unknownFlag, "'fan-out' has no flag '--widnow'; did you mean '--window'?"),
    ("fan-out --entirely-else", .unknownFlag, "'fan-out' has no flag '--entirely-else'"),
    ("fan-out -window 3", .unknownFlag, "no flag '-window': flags begin with two dashes; did you mean '--window'?"),
    ("fan-out --window", .missingValue, "--window needs a value: a whole number from 1 to 1024"),
    (
      "fan-out --window --json", .missingValue,
      "--window needs a value: a whole number from 1 to 1024 (one that begins with -- is written --window=VALUE)"
    ),
    ("fan-out --no-compress=true", .missingValue, "--no-compress takes no value"),
    ("fan-out extra", .unexpectedArgument, "'fan-out' does not know what to do with 'extra'"),
    ("explain", .missing, "'explain' needs APNS-ID: The notification's id."),
    (
      "publish", .missing,
      "--target TARGET is missing (or CARILLON_PUBLISH_TARGET, or 'publish.target' in the configuration file): Whom it is for."
    ),
    ("fanout", .unknownCommand, "no command 'fanout'; did you mean 'fan-out'?; 'carillon --help' lists them"),
    ("topics", .unknownCommand, "'topics' needs one more word: topics create"),
    ("--window 3", .unknownCommand, "the command comes first, then its flags; 'carillon --help' lists them"),
    ("", .unknownCommand, "which command? 'carillon --help' lists them"),
    (
      "fan-out --config /nonexistent/carillon.conf", .unreadableFile,
      "--config: /nonexistent/carillon.conf cannot be read: No such file or directory"
    ),
    ("fan-out --config /tmp", .unreadableFile, "--config: /tmp is a directory: it must be a regular file"),
    ("fan-out --config /dev/null", .unreadableFile, "--config: /dev/null is a device: it must be a regular file"),
  ])
  func wrongLineIsAnsweredWithWhatIsAllowed(_ line: String, _ code: UsageError.Code, _ text: String) {
    let mistake = Example.mistake(line)
    #expect(mistake?.code == code)
    #expect(mistake?.description == text)
  }

  @Test(arguments: [
    (
      "fanout.window = 0", UsageError.Code.wrongValue,
      "FILE:1 (fanout.window): '0' is not allowed: it must be a whole number from 1 to 1024"
    ),
    ("\nredis.pin = 99", .wrongValue, "FILE:2 (redis.pin): '••••' is not allowed: it must be a whole number from 1000 to 9999"),
    ("# one\nfanout.windwo = 3", .unknownKey, "FILE:2: no setting has the key 'fanout.windwo'; did you mean 'fanout.window'?"),
    ("window = 3", .unknownKey, "FILE:1: no setting has the key 'window'; did you mean 'fanout.window'?"),
    ("fanout.window", .malformedFile, "FILE:1: a line is 'key = value' or a comment that begins with #"),
    ("redis.password = \"x", .malformedFile, "FILE:1: the value of 'redis.password' begins with a quote and does not end with one"),
    ("fanout.window = 3\n\nfanout.window = 4", .malformedFile, "FILE:3: 'fanout.window' stands already in FILE:1"),
    // A setting of another command is checked too: one file serves the whole cluster.
    ("publish.target =", .wrongValue, "FILE:1 (publish.target): '' is not allowed: it must be a text that is not empty"),
  ])
  func wrongFileIsAnsweredWithTheLine(_ file: String, _ code: UsageError.Code, _ text: String) {
    let mistake = Example.mistake("fan-out", file: file)
    #expect(mistake?.code == code)
    #expect(mistake?.description == text)
  }

  /// Each place where an error repeats what somebody typed.
  @Test(arguments: [
    "TEXT", "-TEXT", "fan-out -TEXT", "fan-out --TEXT", "fan-out --TEXT=1", "fan-out TEXT", "fan-out --window TEXT",
    "fan-out --log-format TEXT",
    "fan-out --kafka TEXT", "fan-out --listen TEXT", "fan-out --kafka.TEXT", "fan-out --config TEXT", "fan-out --no-json=TEXT",
    "topics TEXT",
    "FILE TEXT = 1", "FILE fanout.window = TEXT", "FILE TEXT = \"x", "VARIABLE TEXT",
  ])
  func `an error repeats what was typed escaped and not at any length`(_ line: String) throws {
    let typed = "a\u{1B}]0;x\u{7}\u{9B}2J\u{202E}\u{200B}" + String(repeating: "z", count: 100_000)
    let given = line.split(separator: " ", maxSplits: 1).last.map { String($0).replacing("TEXT", with: typed) } ?? ""
    let mistake =
      switch line.prefix(while: { $0 != " " }) {
      case "FILE": Example.mistake("fan-out", file: given)
      case "VARIABLE": Example.mistake("fan-out", environment: ["CARILLON_FANOUT_WINDOW": given])
      default: Example.mistake(line.replacing("TEXT", with: typed))
      }
    let text = try #require(mistake).description
    #expect(text.utf8.count < 1_500, "\(line): \(text.utf8.count) bytes")
    #expect(
      !text.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) || ["\u{202E}", "\u{200B}"].contains($0) },
      "\(line)")
  }

  @Test(arguments: [
    ("CARILLON_FANOUT_WINDOWS", "CARILLON_FANOUT_WINDOWS is no setting of any command; did you mean 'CARILLON_FANOUT_WINDOW'?"),
    ("CARILLON_KAFKAA", "CARILLON_KAFKAA is no setting of any command; did you mean 'CARILLON_KAFKA'?"),
    ("CARILLON_SOMETHING_ELSE", "CARILLON_SOMETHING_ELSE is no setting of any command"),
    ("CARILLON_", "CARILLON_ is no setting of any command"),
    ("CARILLON_KAFKA_PORT", "CARILLON_KAFKA_PORT is no setting, and there is no property 'port'; did you mean 'CARILLON_KAFKA'?"),
    ("CARILLON_A\u{1B}[2J", "CARILLON_A\\u{1b}[2J is no setting of any command"),
  ])
  func `a variable that no command has is refused, also a property that the library has not`(_ name: String, _ text: String) {
    let mistake = Example.mistake("fan-out", environment: [name: "9092"])
    #expect(mistake?.code == .unknownKey && mistake?.description == text, "\(mistake?.description ?? "none")")
    #expect(Example.mistake("topics create", environment: [name: ""])?.description == text)
  }

  @Test func `variables of other commands and programs, and the Services of Kubernetes, are no mistakes`() {
    let others = ["CARILLON_PUBLISH_TARGET": "a", "PATH": "/bin", "CARILLON": "x", "CARILLONS_A": "b"]
    #expect(Example.mistake("fan-out", environment: others) == nil)
    let links = [
      "CARILLON_KAFKA_SERVICE_HOST": "10.0.0.1", "CARILLON_KAFKA_SERVICE_PORT": "9092", "CARILLON_KAFKA_SERVICE_PORT_BROKER": "9092",
      "CARILLON_KAFKA_PORT": "tcp://10.0.0.1:9092", "CARILLON_KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
      "CARILLON_KAFKA_PORT_9092_TCP_PROTO": "tcp", "CARILLON_KAFKA_PORT_9092_TCP_PORT": "9092",
      "CARILLON_KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1", "CARILLON_DEVICES_PORT": "tcp://10.0.0.2:7171",
    ]
    #expect(Example.mistake("fan-out", environment: links) == nil)
    // Without its host it is somebody's own variable.
    #expect(Example.mistake("fan-out", environment: links.filter { $0.key != "CARILLON_KAFKA_SERVICE_HOST" }) != nil)
  }

  @Test func wrongVariableIsNamed() {
    let mistake = Example.mistake("fan-out", environment: ["CARILLON_FANOUT_WINDOW": "many"])
    #expect(
      mistake?.description == "CARILLON_FANOUT_WINDOW (fanout.window): 'many' is not allowed: it must be a whole number from 1 to 1024")
    #expect(mistake?.command == "fan-out")
  }
}
