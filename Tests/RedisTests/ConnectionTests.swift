import EventLoop
import Glibc
import Redis
import TestSupport
import Testing

private let quick = Backoff(firstMilliseconds: 5, longestMilliseconds: 50)

@Suite struct ConnectionTests {
  @Test(arguments: [PrivateServer.Listening.unixSocket, .port(nil)])
  func isMadeOverSocketsAndPorts(_ listening: PrivateServer.Listening) async throws {
    try await withRedis(listening: listening) { server in
      try await withClient(RedisConfiguration(server.address, clientName: "lane-7").patient) { client in
        #expect(await client.isUp == nil)
        try await client.open()
        #expect(await client.isUp == true)
        #expect(try await client.command("CLIENT", "GETNAME").text == "lane-7")
        #expect(await client.events == ["up"])
        #expect(await client.epoch == 0)
      }
    }
  }

  @Test func aNameIsLookedUp() async throws {
    try await withRedis(listening: .port(nil)) { server in
      guard case .tcp(_, let port) = server.address.endpoint else { return }
      try await withClient(RedisConfiguration(RedisAddress(.tcp(host: "localhost", port: port)), backoff: quick).patient) { client in
        try await client.open()
        #expect(try await client.command("PING") == .status("PONG"))
      }
    }
  }

  @Test func anUnknownNameIsNamed() async throws {
    let address = RedisAddress(.tcp(host: "no-such-host.invalid", port: 1))
    try await withClient(RedisConfiguration(address).patient) { client in
      await client.start()
      #expect(await client.wait { !$0.attemptErrors.isEmpty })
      #expect(await client.attemptErrors.first?.code == .unresolved)
    }
  }

  @Test func databasesAreApart() async throws {
    try await withRedis { server in
      var other = server.address
      other.database = 3
      try await withClient(RedisConfiguration(server.address).patient) { zero in
        try await withClient(RedisConfiguration(other).patient) { three in
          try await zero.open()
          try await three.open()
          _ = try await three.command("SET", "k", "three")
          #expect(try await zero.command("GET", "k") == .null)
          #expect(try await three.command("GET", "k").text == "three")
        }
      }
      other.database = 99
      try await withClient(RedisConfiguration(other).patient) { client in
        let error = await #expect(throws: RedisError.self) { try await client.open() }
        #expect(error?.message.contains("no such database") == true)
      }
    }
  }

  @Test func userAndPasswordOpen() async throws {
    try await withRedis(settings: ["--requirepass", "open sesame", "--user", "ada", "on", ">hunter2", "~*", "+@all"]) { server in
      for (user, password) in [(nil, "open sesame"), ("ada", "hunter2")] as [(String?, String)] {
        var address = server.address
        (address.user, address.password) = (user, password)
        try await withClient(RedisConfiguration(address, backoff: quick).patient) { client in
          try await client.open()
          #expect(try await client.command("ACL", "WHOAMI").text == user ?? "default")
        }
      }
    }
  }

  @Test func aWrongPasswordIsAnErrorAndDoesNotHammer() async throws {
    try await withRedis(settings: ["--requirepass", "right"]) { server in
      for password in ["wrong", nil] {
        var address = server.address
        address.password = password
        try await withClient(RedisConfiguration(address, backoff: Backoff(longestMilliseconds: 3_600_000)).patient) { client in
          let error = await #expect(throws: RedisError.self) { try await client.open() }
          #expect(error?.code == .authenticationFailed)
          #expect(error?.isRetriable == false)
          #expect(error?.message.contains("check them in the Redis address") == true)
          #expect(error?.message.contains("wrong") == false || error?.message.contains("WRONGPASS") == true)
          // The next attempt is far off, though it is the first failure.
          #expect(await client.waits.allSatisfy { $0 >= 1_800_000 })
          #expect(await client.waits.count == 1)
        }
      }
    }
  }

  @Test func closingFailsEachCallInFlightOnce() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        await server.signal(SIGSTOP)
        _ = await client.send(0..<1000) { command, _ in command.begin("PING") }
        await client.close()
        let outcomes = await client.outcomes(of: 1000)
        #expect(outcomes.count == 1000)
        #expect(outcomes.values.allSatisfy { $0.count == 1 && failure($0.first)?.code == .closed })
        #expect(await client.isUp == false)
        #expect(await client.send(0..<1) { command, _ in command.begin("PING") } == [.down])
        #expect(await client.events == ["up"])
        await client.close()
      }
    }
  }

  @Test func theDeadlineFailsCallsAndTheConnectionRecovers() async throws {
    try await withRedis { server in
      let configuration = RedisConfiguration(
        server.address, callDeadlineMilliseconds: 200, connectDeadlineMilliseconds: 300, backoff: quick)
      try await withClient(configuration) { client in
        try await client.open()
        await server.signal(SIGSTOP)
        _ = await client.send(0..<100) { command, _ in command.begin("PING") }
        let outcomes = await client.outcomes(of: 100)
        #expect(outcomes.values.allSatisfy { $0.count == 1 && failure($0.first)?.code == .timedOut })
        #expect(await client.epoch == 1)
        #expect(await client.wait { !$0.attemptErrors.isEmpty })
        #expect(await client.isUp == false, "it says that it is up while the server stands still")
        await server.signal(SIGCONT)
        // This call has no more time than the others.
        await eventually("it answers") {
          try await client.waitUntilUp()
          return try await client.command("PING") == .status("PONG")
        }
      }
    }
  }

  /// Else who gives Redis more than it can do within the deadline would begin again for ever.
  @Test(.onlyInAll("it is about time: calls that take longer together than one may")) func aServerThatIsSlowButAnswersIsNotLost()
    async throws
  {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address, callDeadlineMilliseconds: 10_000, backoff: quick)) { client in
        try await client.open()
        let began = Moment()
        // Each keeps the connection for a fifth of a second.
        _ = await client.send(0..<60) { command, _ in
          command.begin("BLPOP")
          command.append("nothing")
          command.append("0.2")
        }
        let outcomes = await client.outcomes(of: 60)
        #expect(!began.isWithin(.milliseconds(11_000)), "too quick to show anything")
        #expect(outcomes.values.allSatisfy { $0.count == 1 && failure($0.first) == nil })
        #expect(await client.epoch == 0)
      }
    }
  }

  @Test func callsAfterTheLateOneAreLostNotLate() async throws {
    _ = try await withRedis { server in
      // Where the machine stands still, the first call's time may be over before the second is sent, or that of both together.
      await eventually("one is late, and the other lost") {
        try await withClient(RedisConfiguration(server.address, callDeadlineMilliseconds: 2_000, backoff: quick)) { client in
          try await client.waitOpen(hangMilliseconds)
          await server.signal(SIGSTOP)
          _ = await client.send(0..<1) { command, _ in command.begin("PING") }
          // In the middle of the first call's time: calls are looked at only now and then, so one sent right after it may be late with it.
          await timePasses(.seconds(1))
          let isSent = await client.send(1..<2) { command, _ in command.begin("PING") } == [.accepted]
          let outcomes = await client.outcomes(of: isSent ? 2 : 1)
          await server.signal(SIGCONT)
          #expect(failure(outcomes[0]?.first)?.code == .timedOut)
          return isSent && failure(outcomes[1]?.first)?.code == .connectionLost
        }
      }
    }
  }

  @Test func aKilledServerFailsCallsInFlightAndIsFoundAgain() async throws {
    let loop = EventLoop(name: "port")
    let port = try await freePort(on: loop)
    await loop.close()
    try await withRedis(listening: .port(port)) { server in
      try await withClient(RedisConfiguration(server.address, backoff: quick, scripts: [ScriptTests.add]).patient) { client in
        try await client.open()
        await server.signal(SIGSTOP)
        _ = await client.send(0..<1000) { command, _ in
          command.begin("INCR")
          command.append("n")
        }
        await server.kill()
        let outcomes = await client.outcomes(of: 1000)
        #expect(outcomes.count == 1000)
        #expect(outcomes.values.allSatisfy { $0.count == 1 })
        #expect(outcomes.values.allSatisfy { failure($0.first)?.code == .connectionLost })
        #expect(await client.epoch == 1)
        #expect(await client.wait { $0.events.contains("failed") })
        #expect(await client.send(0..<1) { command, _ in command.begin("PING") } == [.down])
        try await server.launch(deadlineMilliseconds: hangMilliseconds)
        try await client.waitUntilUp()
        #expect(try await client.call(ScriptTests.add, ["n"], [1]) == .integer(1))
        #expect(await client.events.filter { $0 != "failed" } == ["up", "down", "up"])
      }
    }
  }

  @Test func aDemotedServerIsLeft() async throws {
    try await withRedis(listening: .port(nil)) { server in
      try await withClient(RedisConfiguration(server.address, backoff: quick).patient) { client in
        try await client.open()
        _ = try await client.command("REPLICAOF", "127.0.0.1", 1)
        let error = await #expect(throws: RedisError.self) { try await client.command("SET", "k", "v") }
        #expect(error?.code == .readOnly)
        #expect(await client.wait { $0.events.contains("down") })
        #expect(await client.epoch == 1)
      }
    }
  }

  @Test(arguments: [
    "HTTP/1.1 400 Bad Request\r\n\r\n", "+OK\r\n+OK\r\n+OK\r\n+OK\r\n", "*-7\r\n", "$9223372036854775807\r\n", ":12x\r\n",
    "*2\r\n*2147483647\r\n", "\0\0\0\0", "-ERR go away\r\n", "-ERR max number of clients reached\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
  ])
  func aPeerThatTalksNonsenseIsAnErrorNotATrap(_ nonsense: String) async throws {
    let trash = TrashServer(nonsense)
    let port = try await trash.listen()
    let address = RedisAddress(.tcp(host: "127.0.0.1", port: port), password: "secret")
    try await withClient(RedisConfiguration(address, connectDeadlineMilliseconds: 500, backoff: quick)) { client in
      let error = await #expect(throws: RedisError.self) { try await client.waitOpen() }
      #expect(error?.message.contains("secret") == false)
      #expect(await client.events.contains("up") == false)
      await client.close()
      #expect(await client.inFlight == 0)
    }
    await trash.loop.close()
  }

  /// As Redis in protected mode does, or one that has too many clients.
  @Test func `what a server says before it closes is the reason`() async throws {
    let server = TrashServer("-DENIED Redis is running in protected mode\r\n", closesAfter: 10)
    let port = try await server.listen()
    let address = RedisAddress(.tcp(host: "127.0.0.1", port: port), password: nil)
    // More than a reset connection lets through.
    let script = RedisScript("return '\(String(repeating: "x", count: 200_000))'")
    try await withClient(RedisConfiguration(address, backoff: quick, scripts: [script]).patient) { client in
      await client.start()
      #expect(await client.wait { $0.attemptErrors.count >= 3 })
      let errors = await client.attemptErrors
      let said = "closes the connection: Redis answered: DENIED Redis is running in protected mode"
      #expect(errors.allSatisfy { $0.message.hasSuffix(said) }, "\(errors)")
      #expect(errors.allSatisfy { $0.code == .connectionLost && $0.isRetriable })
      await client.close()
    }
    await server.loop.close()
  }

  @Test func nobodyListeningIsTriedAgainEverLessOften() async throws {
    let address = RedisAddress(.unix(path: "/nonexistent/redis.sock"))
    try await withClient(RedisConfiguration(address, backoff: Backoff(firstMilliseconds: 4, longestMilliseconds: 16)).patient) { client in
      await client.start()
      #expect(await client.wait { $0.waits.count >= 12 })
      let waits = await client.waits
      #expect(waits.allSatisfy { (1...16).contains($0) })
      #expect(waits.first.map { $0 <= 4 } == true)
      #expect(Set(waits).count > 1)
      #expect(await client.attemptErrors.allSatisfy { $0.code == .unreachable && $0.isRetriable })
    }
  }
}

extension Client {
  func waitOpen(_ milliseconds: Int = 700) async throws {
    start()
    try await waitUntilUp(milliseconds)
  }
}

/// Says the same to everyone at once, and goes on listening.
private final class TrashServer: Sendable {
  let loop = EventLoop(name: "trash")
  private let text: String
  /// After how many milliseconds it closes a connection, without a look at what came; nil for never.
  private let closesAfter: Int?

  init(_ text: String, closesAfter: Int? = nil) { (self.text, self.closesAfter) = (text, closesAfter) }

  private final class Quiet: StreamHandler {
    func streamReceived(_ bytes: UnsafeRawBufferPointer) {}
    func streamEnded(_ end: StreamEnd) {}
    func streamDrained() {}
  }

  func listen() async throws -> Int {
    try await loop.run { [loop, text, closesAfter] in
      try Listener(on: loop, at: SocketAddress(host: "127.0.0.1", port: 0)) { stream in
        stream.handler = Quiet()
        stream.write(SharedBytes.make(text))
        guard let closesAfter else { return stream.startReading() }
        let timer = Timer(on: loop)
        timer.handler = {
          stream.close()
          timer.close()
        }
        timer.start(after: closesAfter)
      }.localAddress.port
    }
  }
}
