import Foundation
import Kafka
import TestSupport
import Testing

@Suite struct ReadmeTests {
  private static let readme: String = {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    return (try? String(contentsOf: package.appendingPathComponent("README.md"), encoding: .utf8)) ?? ""
  }()

  @Test func itsTableOfSettingsIsWhatTheProgramPrints() async throws {
    let readme = Self.readme
    let begin = try #require(readme.range(of: "<!-- settings -->\n"))
    let end = try #require(readme.range(of: "<!-- /settings -->"))
    let printed = try await CarillonCommand.with { try await $0.run(["settings", "--markdown"]) }
    #expect(printed.status == 0)
    #expect(readme[begin.upperBound..<end.lowerBound] == printed.output, "print it again: carillon settings --markdown")
  }

  @Test(.enabled(if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt"))
  func itsExamplesPutATargetWhereTheCommandPutsIt() async throws {
    let python = try example(from: "```python\n", to: "```\n")
    let kcat = FileManager.default.isExecutableFile(atPath: "/usr/bin/kcat") ? try example(from: "    echo", to: "\n\n") : nil
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        let prefix = KafkaFixture.unique("readme") + "."
        let topic = prefix + "requests"
        if let embedded = kafka.embedded { try embedded.createTopic(topic, partitions: 16) }
        try await kafka.admin.ensureTopics([TopicSpecification(topic, partitions: 16)])
        let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
        let people = (0..<24).map { "user:\($0)" }
        func filled(_ example: String, _ ending: String) -> String {
          people.map { person in
            example.replacing("HOST:PORT", with: servers).replacing("notifications.requests", with: topic).replacing(
              "user:ada", with: person)
          }.joined(separator: ending) + ending
        }
        let program = "import json, uuid\nfrom confluent_kafka import Producer\n" + filled(python, "assert producer.flush(30) == 0\n")
        try run(ClusterFixture.python ?? "", try carillon.file("example.py", program))
        if let kcat { try run("/bin/sh", try carillon.file("example.sh", filled("echo" + kcat, "\n"))) }
        let lines = people.map { #"{"target":"\#($0)","title":"x"}"# }.joined(separator: "\n")
        let published = try await carillon.run(
          ["publish", "--kafka", servers, "--topic-prefix", prefix, "--app", "com.example", "--lines", "-"], input: lines)
        #expect(published.status == 0, "it said: \(published.errors)")
        let records = try await kafka.records(of: topic, count: (kcat == nil ? 2 : 3) * people.count, withinSeconds: 60)
        let partitions = Dictionary(grouping: records) { String(decoding: $0.key ?? [], as: UTF8.self) }
        #expect(Set(partitions.keys) == Set(people))
        for (person, records) in partitions { #expect(Set(records.map(\.partition)).count == 1, "\(person) lies in two partitions") }
      }
    }
  }

  /// What stands between two texts.
  private func example(from begin: String, to end: String) throws -> String {
    let start = try #require(Self.readme.range(of: begin)).upperBound
    return String(Self.readme[start..<(try #require(Self.readme.range(of: end, range: start..<Self.readme.endIndex))).lowerBound])
  }

  private func run(_ program: String, _ script: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = [script]
    try process.run()
  }
}
