import EventLoop
import TestSupport
import Testing

@testable import Redis

/// The replies of a server that is none, or of a mind of its own, through real sockets.
@Suite struct ReplyFuzzTests {
  private static let greeting = "+OK\r\n+PONG\r\n$40\r\n0123456789012345678901234567890123456789\r\n"
  /// What it answers to the greeting, and to the calls; `separator` stands between.
  private static let corpus =
    [
      "*5\r\n:1\r\n$12\r\n0123456789ab\r\n$24\r\n012345678901234567890123\r\n$-1\r\n:17\r\n",
      "$5\r\nhello\r\n$0\r\n\r\n$-1\r\n:-9223372036854775808\r\n+QUEUED\r\n-ERR no\r\n",
      "*-1\r\n*0\r\n*2\r\n*1\r\n*1\r\n*1\r\n:1\r\n$1\r\nx\r\n",
      "-NOSCRIPT No matching script. Please use EVAL.\r\n$40\r\n0123456789012345678901234567890123456789\r\n-NOSCRIPT again\r\n",
      "-READONLY You can't write against a read only replica.\r\n", "-MOVED 3999 127.0.0.1:6381\r\n:1\r\n",
      "-LOADING Redis is loading\r\n:1\r\n",
      "*3\r\n-ERR one\r\n:2\r\n$3\r\nabc\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n", "$3\r\n-12\r\n$20\r\n-9223372036854775809\r\n",
    ].map { Array((greeting + separator + $0).utf8) }
    + ["-NOAUTH Authentication required.\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"].map { Array($0.utf8) }
  private static let separator = "\u{1}\u{2}"
  private static let tokens = [
    "\r\n", "*", "$", ":", "+", "-", "*-1\r\n", "$-1\r\n", "*4194304\r\n", "*1000000000\r\n", "$536870912\r\n", "$1\r\n",
    "*1\r\n*1\r\n*1\r\n", "+OK\r\n",
    ":1\r\n", "-ERR ", "-NOSCRIPT x\r\n", "-READONLY x\r\n", "-MOVED 1 ", "%1\r\n", "_\r\n", ",1.5\r\n", "#t\r\n", ">2\r\n", separator,
  ]

  /// Asks everything of a reply that can be asked.
  private final class Asker: RedisReplyHandler {
    var accepted = 0
    var answered = 0

    func redisReplied(tag: UInt64, reply: RedisReplyView) {
      answered += 1
      ask(reply)
      _ = reply.value
    }

    private func ask(_ reply: RedisReplyView) {
      (_, _, _, _) = (reply.text, reply.integer, reply.error, reply.equals("OK"))
      for index in -1...min(reply.count, 100) { if let element = reply[index] { ask(element) } }
    }

    func redisFailed(tag: UInt64, error: RedisError) { answered += 1 }
  }

  private actor Connections: LoopActor {
    nonisolated let loop = EventLoop(name: "redis-fuzz")
    private let asker = Asker()
    private var all: [RedisConnection] = []
    private let script = RedisScript("return 1")

    func start(_ count: Int, _ address: SocketAddress) throws {
      for _ in 0..<count {
        var configuration = RedisConfiguration(try RedisAddress("\(address)"), scripts: [script])
        configuration.backoff = Backoff(firstMilliseconds: 1, longestMilliseconds: 1)
        configuration.callDeadlineMilliseconds = 200
        configuration.connectDeadlineMilliseconds = 200
        let connection = RedisConnection(on: loop, configuration)
        connection.onUp = { [unowned connection, asker, script] in
          var command = RedisCommand()
          for number in 0..<6 {
            if number % 2 == 0 { command.begin("GET") } else { command.begin(script, keys: 1) }
            command.append("key")
            if connection.send(command, to: asker, tag: UInt64(number)) == .accepted { asker.accepted += 1 }
          }
        }
        all.append(connection)
        connection.start()
      }
    }

    /// Calls that were accepted, and that have had their outcome.
    func stop() -> (accepted: Int, answered: Int) {
      for connection in all { connection.close() }
      all = []
      return (asker.accepted, asker.answered)
    }
  }

  @Test func noReplyTrapsOrHangsAndEachCallHasOneOutcome() async throws {
    let fuzz = Fuzz("redis replies", corpus: Self.corpus, tokens: Self.tokens, inputs: 2_000)
    let server = HostileServer()
    let separator = Array(Self.separator.utf8)
    let address = try await server.listen { number, _ in
      let bytes = fuzz.input((fuzz.numbers.first ?? 0) + number).bytes
      guard let place = bytes.firstRange(of: separator) else { return [bytes] }
      return [Array(bytes[..<place.lowerBound]), Array(bytes[place.upperBound...])]
    }
    let memory = Fuzz.residentBytes()
    let connections = Connections()
    try await connections.start(16, address)
    var (passed, before) = (0, -1)
    // Many more than usual take longer than a hang: each wait is for some more.
    while passed < fuzz.numbers.count, passed > before {
      before = passed
      await eventually("the connections go on behind \(fuzz.place(passed))") {
        passed = await server.connections
        return passed >= min(fuzz.numbers.count, before + 10_000)
      }
    }
    let (accepted, answered) = await connections.stop()
    await connections.loop.close()
    await server.close()
    #expect(accepted == answered)
    #expect(accepted > passed / 20, "too few greetings pass for the calls to be tried")
    let grown = (Fuzz.residentBytes() - memory) >> 20
    if fuzz.count > 50_000 {
      print("fuzz redis replies: \(passed) connections, \(answered) calls, memory grew by \(grown) MiB, seed \(fuzz.seed)")
    }
    #expect(grown < 512)
  }
}
