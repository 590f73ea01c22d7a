import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

/// Guarantees across processes: real workers, real sockets, and clients that know nothing but the contract.
@Suite(.serialized) enum ClusterTests {}

extension ClusterTests {
  /// Where the clients of these tests are.
  static func client(_ name: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Clients/\(name)").path
  }

  /// Flags that name the AsyncAPI document.
  static let contract = [
    "--contract",
    URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Sources/Notifications/Contract/asyncapi.json").path,
  ]

  /// A client that proves one guarantee with each of its parts, starts the workers for it by itself, and says of each part whether it held.
  ///
  /// One process runs the parts of the form side by side, the first time that one of them is asked for; each test judges its own part.
  struct Script {
    let name: String
    /// The parts of the short form. They need no more than an embedded broker.
    let short: [String]
    /// The parts that the complete form has besides, on a real Kafka. Each has a process of its own elsewhere.
    let complete: [String]
    /// What it is given beside the parts' names and where everything is.
    let more: [String]

    init(_ name: String, short: [String] = [], complete: [String] = [], _ more: [String] = []) {
      (self.name, self.short, self.complete, self.more) = (name, short, complete, more)
    }

    /// Throws what a part said unless all that it proves holds.
    func holds(_ part: String, on kafka: ClusterKafka = .best) async throws {
      let together = isComplete && kafka == .real ? short + complete : short
      let run = try await ScriptRuns.shared.run(of: self, together.contains(part) ? together : [part], on: kafka)
      try ClusterTests.expect(part, of: name, in: run.lines, run.text)
    }
  }

  /// Throws what a part said unless all that it proves holds.
  private static func expect(_ part: String, of name: String, in lines: [JSONValue], _ text: String) throws {
    let result = lines.last { $0["part"]?.stringValue == part && $0["result"] != nil }
    guard result?["result"]?.stringValue == "held" else {
      throw ClusterFailure("\(name) --part \(part): \(result?.text ?? "it has not ended")\n\(text)")
    }
  }

  /// A run of a script that starts its own cluster and a browser. All tests of a suite judge one.
  struct BrowserRun {
    private let name: String
    private let run: Task<CarillonCommand.Result, any Error>

    /// Begins a run of parts.
    init(_ name: String, _ parts: String, _ more: [String] = []) {
      self.name = name
      run = Task {
        try await CarillonCommand.with { carillon in
          let words = ["-u", client(name), "--binary", CarillonCommand.program.path, "--part", parts] + more
          let process = try carillon.start(words, program: URL(fileURLWithPath: ClusterFixture.python ?? ""))
          // Each wait of the script ends before this one, and says what it has waited for.
          return try await process.result(hangs: parts.split(separator: ",").count + 1)
        }
      }
    }

    /// Throws what a part said unless all that it proves holds.
    func holds(_ part: String) async throws {
      let result = try await run.value
      try ClusterTests.expect(part, of: name, in: result.lines.compactMap { try? JSONValue(parsing: $0) }, result.output + result.errors)
    }
  }

  /// The runs of scripts, each of which is made once.
  private actor ScriptRuns {
    /// What a script said.
    struct Output {
      let lines: [JSONValue]
      let text: String
    }

    static let shared = ScriptRuns()
    private var runs: [String: Task<Output, any Error>] = [:]

    /// Runs parts in a cluster that has topics and no workers.
    func run(of script: Script, _ parts: [String], on kafka: ClusterKafka) async throws -> Output {
      let parts = parts.joined(separator: ",")
      let key = "\(kafka) \(script.name) \(parts)"
      let run =
        runs[key]
        ?? Task {
          try await ClusterFixture.with(kafka) { cluster in
            let process = try await cluster.client(
              client(script.name), ["--binary", cluster.carillon(), "--part", parts] + script.more)
            _ = try await process.exit(hangs: parts.split(separator: ",").count + 1)
            return Output(lines: process.lines, text: process.text)
          }
        }
      runs[key] = run
      return try await run.value
    }
  }
}

extension ClusterKafka {
  /// The real one where there is one, for what is shown on one broker.
  static var best: ClusterKafka { available.last ?? .embedded }
  /// Both in the complete form, where there are both; otherwise the best.
  static var ofForm: [ClusterKafka] { isComplete ? available : [best] }
}

extension Trait where Self == ConditionTrait {
  /// A test whose client is in Python.
  static var inPython: ConditionTrait {
    .enabled(
      if: ClusterFixture.python != nil, "TESTS_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it")
  }
  /// A test that an embedded broker is not enough for.
  static var onRealKafka: ConditionTrait { .enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)") }
  /// A test that starts brokers of its own.
  static var withOwnBrokers: ConditionTrait { .enabled(if: ClusterFixture.kafkaFolder != nil, "\(KafkaFixture.howToGetOne)") }
}
