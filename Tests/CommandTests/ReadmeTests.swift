import Foundation
import JSON
import Kafka
import TestSupport
import Testing

@testable import Command
@testable import Worker

/// What the README and the articles for operators promise to whoever types what they show.
@Suite struct ReadmeTests {
  /// A page of the documentation.
  struct Page: Sendable, CustomTestStringConvertible {
    /// Where it is, from the package's folder on.
    let path: String
    let text: String
    var testDescription: String { path }

    init(_ path: String) {
      self.path = path
      text = (try? String(contentsOf: ReadmeTests.package.appendingPathComponent(path), encoding: .utf8)) ?? ""
    }

    /// The places that it links to and that are no web addresses, without their anchors.
    var relativeLinks: [String] {
      text.matches(of: /\]\(([^)\s#]+)[^)]*\)/).map { String($0.1) }.filter { !$0.contains("://") }
    }

    /// The words behind `carillon` in the command lines of its code.
    var commandLines: [[String]] {
      let text = text.replacing(/\\\n/, with: "")
      let lines = text.matches(of: /(?m)^ *(?:\.build\/release\/carillon|carillon|docker compose run --rm tools) +(\S.*)$/).map(\.1)
      let spans = text.matches(of: /`carillon ([^`]+)`/).map(\.1)
      return (lines + spans).map { $0.split(separator: " ").map(String.init) }
    }
  }

  static let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
  private static let catalog = "Sources/carillon/Documentation.docc"
  private static let readme = Page("README.md")
  static let articles: [Page] = {
    let names = try? FileManager.default.contentsOfDirectory(atPath: package.appendingPathComponent(catalog).path)
    return (names ?? []).filter { $0.hasSuffix(".md") }.sorted().map { Page("\(catalog)/\($0)") }
  }()
  static var pages: [Page] { [readme] + articles }

  @Test func theTablesOfSettingsAreWhatTheProgramPrints() throws {
    let article = Page(Self.catalog + "/Settings.md").text
    let begin = try #require(article.range(of: "<!-- settings -->\n"))
    let end = try #require(article.range(of: "<!-- /settings -->"))
    #expect(
      String(article[begin.upperBound..<end.lowerBound]) == Typed.program.settingsMarkdown, "print it again: carillon settings")
  }

  /// Whoever meets Carillon for the first time reads it in a few minutes; what only operators need is in the articles.
  @Test func theReadmeStaysAPage() {
    #expect(!Self.readme.text.isEmpty)
    #expect(Self.readme.text.utf8.count <= 15 * 1024, "move what only operators need to \(Self.catalog)")
  }

  @Test(arguments: pages) func everyRelativeLinkLeadsToAFile(page: Page) {
    let folder = Self.package.appendingPathComponent(page.path).deletingLastPathComponent()
    for link in page.relativeLinks {
      let file = folder.appendingPathComponent(link).standardizedFileURL
      #expect(file.path.hasPrefix(Self.package.path + "/"), "\(link) leads out of the repository")
      #expect(FileManager.default.fileExists(atPath: file.path), "there is no \(link)")
    }
  }

  @Test func theFirstArticleLeadsToAllOthers() {
    let first = Page(Self.catalog + "/carillon.md")
    let others = Self.articles.map(\.path).filter { $0 != first.path }
    #expect(others.count >= 5)
    for path in others { #expect(first.relativeLinks.contains { "\(Self.catalog)/\($0)" == path }, "it does not lead to \(path)") }
  }

  @Test(arguments: pages) func everyCommandLineNamesACommandAndItsFlags(page: Page) {
    for line in page.commandLines {
      // Arguments that are no flags do no harm before --help-all.
      let words = Array(line.prefix { !$0.hasPrefix("-") })
      #expect(throws: Never.self, "carillon \(line.joined(separator: " "))") { try Typed.printed(words + ["--help-all"]) }
      for flag in line.flatMap(Self.flags) {
        #expect(Self.takes(flag, words), "carillon \(line.joined(separator: " ")): no \(flag)")
      }
    }
  }

  /// Whether a command takes a flag, whatever its value.
  private static func takes(_ flag: String, _ words: [String]) -> Bool {
    do throws(UsageError) { _ = try Typed.parse(words + [flag, "--help-all"]) } catch {
      return error.code == .missingValue
    }
    return true
  }

  @Test func `a flag of another command is not taken for one of a documented line's`() {
    #expect(Self.takes("--title", ["publish"]) && Self.takes("--all", ["publish"]) && Self.takes("--no-ack", ["device"]))
    #expect(!Self.takes("--title", ["events"]) && !Self.takes("--no-ack", ["events"]) && !Self.takes("--partitions", ["topics", "creat"]))
  }

  @Test(arguments: pages) func everyFlagAndMetricThatItNamesIsThere(page: Page) {
    let known = Self.allFlags
    for span in page.text.matches(of: /`(--[^`]+)`/) {
      for flag in Self.flags(of: String(span.1)) { #expect(known.contains(flag), "no command has \(flag)") }
    }
    let metrics = Page("Sources/Worker/MetricNames.swift").text
    for span in page.text.matches(of: /`(carillon_\w+)`/) {
      #expect(metrics.contains("\"\(span.1)\""), "there is no metric \(span.1)")
    }
  }

  /// The flags of all commands.
  private static let allFlags: Set<String> = {
    let settings = Typed.program.commands.flatMap(\.settings) + [CommandLineProgram.configuration.declaration]
    let switches = settings.filter(\.isSwitch).map { "--no-\($0.flag)" }
    return Set(settings.map { "--\($0.flag)" } + switches + ["--help", "--help-all", "--version"])
  }()

  /// The flags in a text; a property of librdkafka counts as that of any.
  private static func flags(of text: String) -> Set<String> {
    Set(text.matches(of: /(?:^|[^\w-])(--[a-z][a-z0-9-]*)/).map { String($0.1) })
  }

  @Test(
    .enabled(
      if: ClusterFixture.python != nil, "TESTS_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"))
  func itsExamplesPutATargetWhereTheCommandPutsIt() async throws {
    let python = try example(from: "```python\n", to: "```\n")
    let kcat = FileManager.default.isExecutableFile(atPath: "/usr/bin/kcat") ? try example(from: "    echo", to: "\n\n") : nil
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        let prefix = KafkaFixture.unique("readme") + "."
        let topic = prefix + "requests"
        try await kafka.makeTopics([topic], partitions: 16)
        let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
        let people = (0..<24).map { "user:\($0)" }
        func filled(_ example: String, _ ending: String) -> String {
          people.map { person in
            example.replacing("HOST:PORT", with: servers).replacing("notifications.requests", with: topic).replacing(
              "user:ada", with: person)
          }.joined(separator: ending) + ending
        }
        try run(ClusterFixture.python ?? "", try carillon.file("example.py", filled(python, "")))
        if let kcat { try run("/bin/sh", try carillon.file("example.sh", filled("echo" + kcat, "\n"))) }
        let lines = people.map { #"{"target":"\#($0)","title":"x"}"# }.joined(separator: "\n")
        let published = try await carillon.run(
          ["publish", "--kafka", servers, "--topic-prefix", prefix, "--app", "com.example", "--lines", "-"], input: lines)
        #expect(published.status == 0, "it said: \(published.errors)")
        let records = try await kafka.records(of: topic, count: (kcat == nil ? 2 : 3) * people.count)
        let partitions = Dictionary(grouping: records) { String(decoding: $0.key ?? [], as: UTF8.self) }
        #expect(Set(partitions.keys) == Set(people))
        for (person, records) in partitions { #expect(Set(records.map(\.partition)).count == 1, "\(person) lies in two partitions") }
      }
    }
  }

  @Test(
    .enabled(
      if: ClusterFixture.python != nil, "TESTS_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .onlyInAll("clients of other makers read events in WholeWayTests"))
  func `its consumer prints the events of what was published`() async throws {
    let samples = Self.readme.text.matches(of: /```python\n((?s:.+?))```/).map { String($0.1) }
    let text = try #require(samples.first { $0.contains("Consumer(") })
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      let kafka = try #require(try JSONValue(parsing: try await up.firstLine())["kafka"]?.stringValue)
      let published = try await carillon.run(["publish", "--target", "user:ada", "--app", "com.example", "--body", "x"])
      #expect(published.status == 0, "it said: \(published.errors)")
      let program = try carillon.file("events.py", text.replacing("HOST:PORT", with: kafka))
      let consumer = try carillon.start(
        [program], environment: ["PYTHONUNBUFFERED": "1"], program: URL(fileURLWithPath: ClusterFixture.python ?? ""))
      try await consumer.untilOutput(contains: "carillon.unregistered.v1")
      #expect(consumer.outputSoFar.contains("carillon.addressed.v1"), "it said: \(consumer.errorsSoFar)")
      try await consumer.stop()
      try await up.stop()
    }
  }

  /// What stands between two texts.
  private func example(from begin: String, to end: String) throws -> String {
    let text = Self.readme.text
    let start = try #require(text.range(of: begin)).upperBound
    return String(text[start..<(try #require(text.range(of: end, range: start..<text.endIndex))).lowerBound])
  }

  private func run(_ program: String, _ script: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = [script]
    try process.run()
  }
}
