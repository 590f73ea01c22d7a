import EventLoop
import Testing
import Worker

@Suite struct SettingPrecedenceTests {
  typealias Example = ExampleProgram

  @Test func defaultHoldsWhenNoSourceHasTheSetting() throws {
    let values = try Example.parse("fan-out")
    #expect(values[Example.window] == 32)
    #expect(values[Example.outbox] == 65536)
    #expect(values[Example.hello] == .seconds(10))
    #expect(values[Example.compress])
    #expect(values[Example.format] == .text)
    #expect(values[Example.password] == nil)
    #expect(values[Example.properties] == [:])
    #expect(values.source(of: Example.window) == .standard)
    #expect(values.given.isEmpty)
  }

  @Test func flagsComeBeforeTheEnvironmentAndTheEnvironmentBeforeTheFile() throws {
    let environment = ["CARILLON_FANOUT_WINDOW": "2", "CARILLON_FANOUT_OUTBOX": "2KiB"]
    let file = "fanout.window = 3\nfanout.outbox = 3KiB\nfanout.hello = 3s\n"
    let values = try Example.parse("fan-out --window 1", environment: environment, file: file)
    #expect(values[Example.window] == 1)
    #expect(values[Example.outbox] == 2048)
    #expect(values[Example.hello] == .seconds(3))
    #expect(values.source(of: Example.window) == .flag("--window"))
    #expect(values.source(of: Example.outbox) == .environment("CARILLON_FANOUT_OUTBOX"))
    #expect(values.source(of: Example.hello).description.hasSuffix(".conf:3"))
  }

  @Test func emptyVariableIsAbsent() throws {
    #expect(try Example.parse("fan-out", environment: ["CARILLON_FANOUT_WINDOW": "", "CARILLON_CONFIG": ""])[Example.window] == 32)
  }

  @Test func everyKindIsReadFromAFlag() throws {
    let values = try Example.parse(
      "fan-out --window=7 --outbox 128KiB --hello 500ms --no-compress --log-format json --password p=w --listen [::1]:0 --kafka a:1,b:2")
    #expect(values[Example.window] == 7)
    #expect(values[Example.outbox] == 131_072)
    #expect(values[Example.hello] == .milliseconds(500))
    #expect(!values[Example.compress])
    #expect(values[Example.format] == .json)
    #expect(values[Example.password] == "p=w")
    #expect(values[Example.listen] == SocketAddress(host: "::1", port: 0))
    #expect(values[Example.kafka].map(\.description) == ["a:1", "b:2"])
  }

  @Test func laterFlagReplacesAnEarlierOneAndARepeatedOneAdds() throws {
    #expect(try Example.parse("fan-out --window 1 --window 2")[Example.window] == 2)
    #expect(try Example.parse("publish --target a --tag x --tag y,z")[Example.tags] == ["x", "y", "z"])
    #expect(try Example.parse("publish --target a", file: "publish.tags = x\npublish.tags = y\n")[Example.tags] == ["x", "y"])
    #expect(try Example.parse("publish --target a", environment: ["CARILLON_PUBLISH_TAGS": "x, y"])[Example.tags] == ["x", "y"])
  }

  @Test func propertiesArePassedOnFromEachSourceFlagsFirst() throws {
    let values = try Example.parse(
      "fan-out --kafka.linger.ms=10 --kafka.acks all --kafka.fetch.wait.max.ms=20",
      environment: ["CARILLON_KAFKA_LINGER_MS": "7", "CARILLON_KAFKA_SASL_PASSWORD": "a_B", "CARILLON_KAFKA_DEBUG": "", "KAFKA_ACKS": "0"],
      file: "kafka.linger.ms = 5\nkafka.debug = msg\n")
    #expect(
      values[Example.properties]
        == ["linger.ms": "10", "acks": "all", "fetch.wait.max.ms": "20", "debug": "msg", "sasl.password": "a_B"])
  }

  @Test func argumentsAreBoundInOrder() throws {
    #expect(try Example.parse("explain abc --json")[Example.identifier] == ["abc"])
    let values = try Example.parse("move t 3")
    #expect(values[Argument("TOPIC", "")] == ["t"])
    #expect(values[Argument("PARTITION", "")] == ["3"])
    #expect(values[Argument("TO", "")] == [])
    #expect(try Example.parse("check a - -- --c")[Example.files] == ["a", "-", "--c"])
  }

  @Test func commandOfTwoWordsIsFound() throws {
    guard case .run(let command, _) = try Example.program.parse(["topics", "create"], environment: [:]) else {
      Issue.record("not a command")
      return
    }
    #expect(command.name == "topics create")
  }

  @Test func secretsAreMaskedWhereSettingsAreListed() throws {
    let given = try Example.parse("fan-out --password hunter2 --window 3").given.map { "\($0.key)=\($0.text) \($0.source)" }
    #expect(given == ["fanout.window=3 --window", "redis.password=•••• --password"])
  }

  @Test func fileHasCommentsAndQuotedValues() throws {
    let file = """
      # a comment
        redis.password = " a "b" "
      fanout.window=5
      log.format\t=\tjson\r

      """
    let values = try Example.parse("fan-out", file: file)
    #expect(values[Example.password] == #" a "b" "#)
    #expect(values[Example.window] == 5)
    #expect(values[Example.format] == .json)
    for password in ["a#b", "order #7", "#7", "a\"", "# not a comment"] {
      #expect(try Example.parse("fan-out", file: "redis.password = \(password)")[Example.password] == password)
    }
  }
}
