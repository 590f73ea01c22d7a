import Foundation
import TestSupport
import Testing
import Worker

@testable import Command

/// What a shell offers where somebody begins to type.
@Suite struct CompletionTests {
  /// What bash offers for each of these, the word that is being completed last.
  private func offers(_ typed: [[String]], _ carillon: CarillonCommand) async throws -> [[String]] {
    let printed = try await carillon.run(["completion", "bash"])
    #expect(printed.status == 0)
    let script = try carillon.file("script.bash", printed.output)
    let line = """
      source "$1"; cd "$2"
      while IFS= read -r line; do
        IFS='|' read -ra words <<<"$line"
        [[ $line != *'|' ]] || words+=("")
        COMP_WORDS=("$3" "${words[@]}"); COMP_CWORD=${#words[@]}
        _carillon
        echo "${COMPREPLY[*]}"
      done
      """
    // Without variables that are not set, as some people's shells are.
    let answer = try await carillon.run(
      ["--norc", "-uc", line, "bash", script, carillon.folder.path, CarillonCommand.program.path],
      input: typed.map { $0.joined(separator: "|") + "\n" }.joined(),
      program: URL(fileURLWithPath: "/bin/bash"))
    let answers = answer.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    #expect(answer.status == 0 && answers.count == typed.count, "it said: \(answer.errors)")
    return answers.map { $0.split(separator: " ").map(String.init) }
  }

  static let zsh = "/usr/bin/zsh"

  /// What is typed, with the word that is being completed last, and what is offered.
  static let typed: [([String], [String])] = [
    (["fan"], ["fan-out"]), (["to"], ["topics", "token"]), (["--v"], ["--version"]),
    (["topics", ""], ["create"]), (["token", "k"], ["key"]),
    (["topics", "create", "--part"], ["--partitions"]),
    (["fan-out", "--log-f"], ["--log-format"]), (["fan-out", "--log-format", ""], ["text", "json"]),
    (["fan-out", "--log-format", "=", "j"], ["json"]), (["fan-out", "--log-format", "="], ["text", "json"]),
    (["device", "--no-a"], ["--no-ack"]),
    (["events", "--type", "delivered,exp"], ["delivered,expired"]),
    (["fan-out", "--key-file", "cl"], ["cluster.key"]), (["token", "key", "cl"], ["cluster.key"]), (["audit", "--spill", "f"], ["folder"]),
    (["fan-out", "--lanes", ""], []),
    (["completion", ""], ["bash", "zsh"]), (["nonsense", "--"], []),
  ]

  @Test func bashOffersCommandsFlagsValuesAndFiles() async throws {
    try await CarillonCommand.with { carillon in
      _ = try carillon.file("cluster.key", "")
      try FileManager.default.createDirectory(at: carillon.folder.appendingPathComponent("folder"), withIntermediateDirectories: true)
      let offered = try await offers(Self.typed.map(\.0), carillon)
      for ((words, expected), answer) in zip(Self.typed, offered) { #expect(answer == expected, "\(words) offers \(answer)") }
    }
  }

  @Test func everyFlagIsOfferedWithItsMeaning() throws {
    var count = 0
    for row in Typed.program.settingsMarkdown.split(separator: "\n") where row.hasPrefix("| `") {
      let flag = try #require(row.firstMatch(of: /`(--[^`]+)`/)?.1)
      // NAME stands for the name of a property.
      if flag == "--kafka.NAME" { continue }
      let users = try #require(row.firstMatch(of: /\| ([^|]+) \|$/)?.1)
      let commands = users == "all" ? UsageTests.commands : users.matches(of: /`([^`]+)`/).map { String($0.1) }
      for command in commands {
        let words = command.split(separator: " ").map(String.init) + [String(flag)]
        let offers = Typed.program.completions(of: words)
        #expect(offers.contains { $0.hasPrefix("\(flag):") }, "\(words) offers \(offers)")
        count += 1
      }
    }
    #expect(count > 50)
    #expect(Typed.program.completions(of: ["transform", "--kafka."]).isEmpty)
  }

  @Test func aValueThatHangsAtItsFlagIsCompletedWithIt() {
    #expect(Typed.program.completions(of: ["fan-out", "--log-format=j"]) == ["--log-format=json"])
    #expect(Typed.program.completions(of: ["events", "--type=delivered,exp"]) == ["--type=delivered,expired"])
    #expect(Typed.program.completions(of: ["fan-out", "--json="]) == [])
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: zsh), "zsh is not installed")) func zshUnderstandsItsScript() async throws
  {
    try await CarillonCommand.with { carillon in
      let script = try carillon.file("_carillon", Typed.program.completionScript(for: .zsh))
      let line = #"zsh -fn "$1" && autoload -Uz compinit && compinit -u -D && source "$1" && print $_comps[carillon]"#
      let answer = try await carillon.run(["-fc", line, "zsh", script], program: URL(fileURLWithPath: Self.zsh))
      #expect(answer.lines == ["_carillon"], "it said: \(answer.errors)")
    }
  }

  @Test func anotherShellIsRefused() async throws {
    let refusal = try await Typed.refusal(["completion", "fish"])
    #expect(refusal.code == .wrongUsage && refusal.text.contains("it must be one of bash, zsh"))
  }
}
