import EventLoop
import TestSupport
import Testing

@testable import Worker

/// Configuration files, command lines and the values in both, under random input.
@Suite struct SettingsFuzzTests {
  private static let file = """
    # a worker
    kafka = 10.0.0.1:9092, [::1]:9093
    fanout.window = 64
    fanout.outbox = 128KiB
    fanout.hello = 2500ms
    fanout.compress = no
    log.format = json
    kafka.linger.ms = 5
    redis.password = "# not a comment"
    publish.tags = a,b
    publish.tags = c
    """
  private static let tokens = [
    "=", " = ", "#", " #", "\"", "\n", "\r\n", "\r", "\t", "fanout.window", "kafka.", "redis.password", "publish.tags = ", "KiB", "ms", "d",
    "[::1]:1", ",", "\u{301}", "\u{200D}", "true", "0s",
  ]

  @Test func aConfigurationFileIsUnderstoodOrItsLineIsNamed() {
    let failures = Fuzz("configuration", corpus: [Array(Self.file.utf8), Array("a=b".utf8)], tokens: Self.tokens, inputs: 2_000).run {
      bytes, _ in
      let text = String(decoding: bytes, as: UTF8.self)
      do throws(UsageError) {
        let file = try ConfigurationFile(path: "FILE", text: text)
        for line in file.lines where line.key.contains("=") || line.key.contains("\n") { return "a key is '\(line.key)'" }
        let settings = try FileSettings(file, of: ExampleProgram.program.commands.flatMap(\.settings))
        if settings.settings.values.contains(where: \.texts.isEmpty) { return "a setting without a text" }
        return nil
      } catch {
        return error.description.hasPrefix("FILE:") ? nil : "the error names no line: \(error.description)"
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func aCommandLineIsUnderstoodOrItsMistakeIsNamed() {
    let corpus = [
      "fan-out --window 64 --outbox=128KiB --hello 2500ms --no-compress --kafka.linger.ms 5 --listen [::1]:80 --log-format json",
      "publish --target user:ada --tag a --tag b,c --kafka 1.2.3.4:5,h:6", "explain 123 --json", "move topic 7 here", "check a b c -- --d",
      "topics create --redis-pin 4321", "help fan-out", "--version", "fan-out --help",
    ].map { Array($0.replacing(" ", with: "\0").utf8) }
    let tokens = [
      "\0", "--", "-", "=", "--no-", "--window", "--kafka.", "--config", "--help", "\0--json", "help", "publish", "topics", "\u{301}",
    ]
    let failures = Fuzz("command lines", corpus: corpus, tokens: tokens).run { bytes, _ in
      let arguments = bytes.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
      // The disk is left alone.
      if arguments.contains(where: { $0.contains("conf") }) { return nil }
      do throws(UsageError) {
        guard case .run(_, let values) = try ExampleProgram.program.parse(arguments, environment: [:]) else { return nil }
        for (key, text, _) in values.given where key == "fanout.window" {
          if !(1...1024).contains(values[ExampleProgram.window]) { return "the window is \(text)" }
        }
        return nil
      } catch {
        return error.description.isEmpty ? "the error says nothing" : nil
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  @Test func aValueThatIsReadIsWrittenSoThatItIsReadAlike() {
    let corpus = [
      "64KiB", "1MB", "512", "2500ms", "30s", "2d", "0", "127.0.0.1:8080", "[::1]:80", "host.example:1,other:2", "true", "off", "json",
      "9223372036854775807B", "8589934591GiB",
    ].map { Array($0.utf8) }
    func again<Value: Equatable>(_ kind: SettingKind<Value>, _ text: String) -> String? {
      guard let value = kind.read([text]) else { return nil }
      let written = kind.write(value)
      return kind.read([written]) == value ? nil : "'\(text)' is written as '\(written)' and not read again"
    }
    let failures = Fuzz("values", corpus: corpus, tokens: ["KiB", "GiB", "ms", "d", ":", "[", "]", ",", "-", "+", "\u{0660}", " "]).run {
      bytes, _ in
      let text = String(decoding: bytes, as: UTF8.self)
      return again(SettingKind<Int>.integer(Int.min...Int.max), text) ?? again(SettingKind<Int>.size(0...Int.max), text)
        ?? again(SettingKind<Duration>.duration(.zero...(.seconds(Int64.max / 1000))), text)
        ?? again(SettingKind<SocketAddress>.address, text) ?? again(SettingKind<[SocketAddress]>.addresses, text)
        ?? again(SettingKind<Bool>.boolean, text)
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
