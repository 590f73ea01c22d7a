import Testing
import Worker

@Suite struct CommandHelpTests {
  @Test func completeHelpOfACommandShowsEverythingItTakes() throws {
    guard case .print(let text) = try ExampleProgram.program.parse(["fan-out", "--help-all"], environment: [:]) else {
      Issue.record("no help")
      return
    }
    #expect(
      text == """
        carillon fan-out: holds the connections of devices and delivers to them

        Usage: carillon fan-out [flags]

        Runs until it is told to end; then it tells each device when to reconnect, and drains.

        Sessions
          --window N                  Notifications unacknowledged at most per session.
                                      a whole number from 1 to 1024; default 32; CARILLON_FANOUT_WINDOW
          --outbox SIZE               Bytes that a session may have waiting.
                                      a size from 1KiB to 1MiB, such as 64KiB or 1MiB; default 64KiB;
                                      CARILLON_FANOUT_OUTBOX
          --hello DURATION            Time for the hello.
                                      a duration from 100ms to 1m, such as 500ms, 30s, 5m, 2h or 2d; default 10s;
                                      CARILLON_FANOUT_HELLO
          --compress                  Compresses frames.
                                      on; --no-compress turns it off; CARILLON_FANOUT_COMPRESS
          --listen HOST:PORT          Where devices connect.
                                      HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080; default 0.0.0.0:8080;
                                      CARILLON_FANOUT_LISTEN

        Log
          --log-format text|json      How log lines look.
                                      one of text, json; default text; CARILLON_LOG_FORMAT

        Kafka and Redis
          --kafka HOST:PORT,…         Kafka's bootstrap servers.
                                      HOST:PORT, or several separated by commas; default 127.0.0.1:9092;
                                      CARILLON_KAFKA
          --kafka.NAME VALUE          A property of librdkafka, passed on as it is.
                                      also CARILLON_KAFKA_NAME, and kafka.NAME in the file
          --password TEXT             Redis' password.
                                      CARILLON_REDIS_PASSWORD
          --pin N                     A secret number.
                                      a whole number from 1000 to 9999; default 1234; CARILLON_REDIS_PIN

        Everywhere
          --config FILE               File of settings, one 'key = value' a line. Flags and environment variables take
                                      precedence over it.
                                      CARILLON_CONFIG
          --help                      The most used flags only.
          --help-all                  This text.

        Examples
          # with twice the window
          carillon fan-out --window 64

        """)
  }

  @Test func `help of an unknown command is refused like the command`() {
    #expect(throws: UsageError.self) { try ExampleProgram.program.parse(["help", "fan-uot"], environment: [:]) }
  }

  @Test(arguments: [["fan-out", "--help"], ["fan-out", "-h"], ["help", "fan-out"]]) func shortHelpShowsWhatNearlyEverybodyNeeds(
    _ line: [String]
  ) throws {
    guard case .print(let text) = try ExampleProgram.program.parse(line, environment: [:]) else {
      Issue.record("no help")
      return
    }
    #expect(
      text == """
        carillon fan-out: holds the connections of devices and delivers to them

        Usage: carillon fan-out [flags]

        Runs until it is told to end; then it tells each device when to reconnect, and drains.

        Sessions
          --window N                  Notifications unacknowledged at most per session. (default 32)
          --outbox SIZE               Bytes that a session may have waiting. (default 64KiB)
          --hello DURATION            Time for the hello. (default 10s)
          --compress                  Compresses frames. On; --no-compress turns it off.
          --listen HOST:PORT          Where devices connect. (default 0.0.0.0:8080)

        Kafka and Redis
          --kafka HOST:PORT,…         Kafka's bootstrap servers. (default 127.0.0.1:9092)
          --kafka.NAME VALUE          A property of librdkafka, passed on as it is.
          --password TEXT             Redis' password.

        Everywhere
          --config FILE               File of settings, one 'key = value' a line. Flags and environment variables take
                                      precedence over it.
          --help                      This text.
          --help-all                  2 more flags, and the range, the environment variable and the key of each flag.

        Examples
          # with twice the window
          carillon fan-out --window 64

        """)
  }

  @Test func helpOfTheProgramNamesTheFlagsOfEveryCommand() {
    for flag in ["--help", "--help-all", "--version"] { #expect(ExampleProgram.program.help.contains("\n  \(flag) "), "no \(flag)") }
  }

  @Test(arguments: [["--help"], ["-h"], ["help"]]) func helpOfTheProgramListsItsCommands(_ line: [String]) throws {
    guard case .print(let text) = try ExampleProgram.program.parse(line, environment: [:]) else {
      Issue.record("no help")
      return
    }
    #expect(text.contains("\nRoles\n  fan-out        holds the connections of devices and delivers to them\n"))
    #expect(text.contains("\n  topics create  creates the topics\n"))
  }

  /// `topics` alone is no command, and whoever asks for its help wants to know which there are.
  @Test(arguments: [["topics", "--help"], ["topics", "-h"], ["topics", "help"], ["help", "topics"]])
  func helpOfAFirstWordListsItsCommands(_ line: [String]) throws {
    guard case .print(let text) = try ExampleProgram.program.parse(line, environment: [:]) else {
      Issue.record("no help")
      return
    }
    #expect(
      text == """
        Usage: carillon topics …

          topics create  creates the topics

        'carillon topics create --help' says what a command takes.

        """)
  }

  @Test func usageNamesTheArguments() throws {
    guard case .print(let text) = try ExampleProgram.program.parse(["help", "explain"], environment: [:]) else {
      Issue.record("no help")
      return
    }
    #expect(text.contains("Usage: carillon explain [flags] APNS-ID\n\nArguments\n  APNS-ID                     The notification's id.\n"))
  }

  @Test func versionIsPrinted() throws {
    guard case .print(let text) = try ExampleProgram.program.parse(["--version"], environment: [:]) else {
      Issue.record("no version")
      return
    }
    #expect(text == "carillon 1.2.3\n")
  }

  @Test func everySettingHasOneRowInTheMarkdown() {
    let text = ExampleProgram.program.settingsMarkdown
    let rows = text.split(separator: "\n").filter { $0.hasPrefix("| `") }
    #expect(rows.count == 13)
    #expect(
      text.contains(
        "| `fanout.window` | `--window` | `CARILLON_FANOUT_WINDOW` | `32` | Notifications unacknowledged at most per session. "
          + "Must be a whole number from 1 to 1024. | `fan-out` |\n"))
    #expect(text.contains("| `kafka.*` | `--kafka.NAME` |  |  |"))
    #expect(text.contains("| `kafka` | `--kafka` | `CARILLON_KAFKA` | `127.0.0.1:9092` | Kafka's bootstrap servers."))
    #expect(text.contains("separated by commas. | all |\n"))
  }
}
