import EventLoop
import Redis
import TestSupport
import Testing

@Suite struct CallTests {
  @Test func tenThousandCallsInFlightAreAnsweredInOrder() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        let admitted = await client.send(0..<10_000) { command, tag in
          command.begin("ECHO")
          command.append(tag)
        }
        #expect(admitted.allSatisfy { $0 == .accepted })
        let outcomes = await client.outcomes(of: 10_000)
        #expect(await client.order == Array(0..<10_000))
        for tag in UInt64(0)..<10_000 {
          guard outcomes[tag] == [.success(.bytes(Array(String(tag).utf8)))] else {
            Issue.record("call \(tag): \(String(describing: outcomes[tag]))")
            break
          }
        }
        #expect(await client.inFlight == 0)
      }
    }
  }

  @Test func anyBytesComeBackAsTheyWere() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        let every = (0...255).map { UInt8($0) }
        for value in [[], [0], [13, 10], every, (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }] as [[UInt8]] {
          #expect(try await client.command("SET", .bytes(every + [0]), .bytes(value)) == .status("OK"))
          #expect(try await client.command("GET", .bytes(every + [0])) == .bytes(value))
        }
        #expect(try await client.command("GET", "") == .null)
        #expect(try await client.command("DECRBY", "n", .integer(.max)) == .integer(-.max))
        #expect(try await client.command("GET", "n").integer == -.max)
        #expect(
          try await client.command("EVAL", "return {1, {'a', {false, redis.error_reply('OOM no')}}, redis.status_reply('S')}", 0)
            == .array([
              .integer(1),
              .array([
                .bytes([97]), .array([.null, .error(RedisError(.outOfMemory, "Redis answered: OOM no"))]),
              ]), .status("S"),
            ]))
      }
    }
  }

  @Test func anArgumentMadeOfPartsIsOneArgument() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        let sizes = [0, 1, 9, 10, 11, 99, 100, 5000]
        _ = await client.send(0..<UInt64(sizes.count)) { command, tag in
          command.begin("ECHO")
          command.beginArgument()
          command.extend("m:{")
          command.extend(-7)
          command.extend("}")
          Array(repeating: UInt8(ascii: "x"), count: sizes[Int(tag)]).withUnsafeBytes { command.extend($0) }
          command.endArgument()
        }
        let outcomes = await client.outcomes(of: sizes.count)
        for (tag, size) in sizes.enumerated() {
          #expect(success(outcomes[UInt64(tag)]?.first)?.text == "m:{-7}" + String(repeating: "x", count: size))
        }
      }
    }
  }

  @Test func numbersAreWrittenAsRedisReadsThem() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        let numbers: [Int64] = [0, 9, 10, -1, -10, 99, 100, .max, .min]
        _ = await client.send(0..<UInt64(numbers.count)) { command, tag in
          command.begin("ECHO")
          command.append(numbers[Int(tag)])
        }
        let outcomes = await client.outcomes(of: numbers.count)
        for (tag, number) in numbers.enumerated() {
          #expect(success(outcomes[UInt64(tag)]?.first)?.text == "\(number)")
        }
      }
    }
  }

  @Test func beyondTheBoundACallIsFullAndNothingIsSent() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address, maximumInFlight: 100, maximumBytesInFlight: 20_000).patient) { client in
        try await client.open()
        let small = await client.send(0..<150) { command, _ in
          command.begin("INCR")
          command.append("n")
        }
        #expect(small == Array(repeating: .accepted, count: 100) + Array(repeating: .full, count: 50))
        let outcomes = await client.outcomes(of: 100)
        #expect(outcomes.count == 100)
        // One call may be larger than the bound of bytes, a second has to wait.
        let large = await client.send(200..<203) { command, _ in
          command.begin("SET")
          command.append("k")
          command.append([UInt8](repeating: 1, count: 30_000))
        }
        #expect(large == [.accepted, .full, .full])
        _ = await client.outcomes(of: 101)
        #expect(try await client.command("GET", "n").integer == 100)
      }
    }
  }

  @Test func errorRepliesHaveTheirCodes() async throws {
    try await withRedis(settings: ["--maxmemory", "1"]) { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        func code(_ arguments: RedisArgument...) async -> RedisError.Code? {
          do {
            _ = try await client.command(arguments)
            return nil
          } catch {
            return (error as? RedisError)?.code
          }
        }
        #expect(await code("SET", "k", "v") == .outOfMemory)
        #expect(await code("EVAL", "return redis.call('SET', KEYS[1], 'v')", 1, "k") == .outOfMemory)
        #expect(await code("EVALSHA", "0000000000000000000000000000000000000000", 0) == .noScript)
        #expect(await code("NOSUCH") == .rejected)
        #expect(await code("CONFIG", "SET", "maxmemory", 0) == nil)
        #expect(await code("SET", "k", "v") == nil)
        #expect(await code("HGET", "k", "f") == .wrongType)
        #expect(await code("AUTH", "nobody", "x") == .authenticationFailed)
        let texts: [(String, RedisError.Code, Bool)] = [
          ("LOADING Redis is loading the dataset in memory", .loading, true), ("MASTERDOWN Link with MASTER is down", .masterDown, true),
          ("NOAUTH Authentication required.", .authenticationFailed, false), ("BUSY Redis is busy running a script", .busy, true),
          ("CLUSTERDOWN The cluster is down", .clusterDown, true), ("NOREPLICAS Not enough good replicas", .writesRefused, true),
          ("NOPERM this user has no permissions", .noPermission, false),
          (
            "ERR The user executing the script can't run this command or subcommand script: 3c1f, on @user_script:11.", .noPermission,
            false
          ),
          ("ERR ACL failure in script: User ada has no permissions to run the 'exists' command", .noPermission, false),
          (
            "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand",
            .noPermission, false
          ),
          ("upstream failure", .rejected, false),
          ("ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command not allowed", .outOfMemory, true),
          (
            "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -MISCONF Redis is configured to save RDB snapshots, "
              + "but it is currently not able to persist on disk. Commands that may modify the data set are disabled, because this instance "
              + "is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option).",
            .writesRefused, true
          ),
          ("ERR Error running script (call to f_1): @user_script:1: a-b -1 is not what - it should be", .rejected, false),
        ]
        for (text, code, isRetriable) in texts {
          let error = await #expect(throws: RedisError.self) {
            try await client.command("EVAL", "return redis.error_reply(ARGV[1])", 0, .text(text))
          }
          #expect(error?.code == code)
          #expect(error?.isRetriable == isRetriable)
        }
      }
    }
  }

  @Test func awaitingCallsInALanesTaskHopsNowhere() async throws {
    try await withRedis { server in
      try await withClient(RedisConfiguration(server.address).patient) { client in
        try await client.open()
        let before = client.loop.offLoopEnqueues
        let last = try await Task(executorPreference: client.loop) {
          var last: RedisValue = .null
          for _ in 0..<1000 { last = try await client.command("INCR", "n") }
          return last
        }.value
        #expect(last == .integer(1000))
        // One to start the task, and one for the test's own first wait.
        #expect(client.loop.offLoopEnqueues - before <= 2)
      }
    }
  }

  @Test func callsMadeAtATurnsEndGoOutWithoutWaiting() async throws {
    try await withRedis { server in
      // Calls are looked at by a timer every twentieth part of their time: who had to wait for that would take most of an hour.
      try await withClient(RedisConfiguration(server.address, callDeadlineMilliseconds: 4 * hangMilliseconds)) { client in
        try await client.open()
        try await endsByItself("fifty calls") { try await client.pingAtTurnEnds(50) }
      }
    }
  }
}

extension Client {
  func command(_ arguments: [RedisArgument]) async throws -> RedisValue { try await someConnection().command(arguments) }

  /// Makes each call at the end of a turn, after the connection's own turn end.
  func pingAtTurnEnds(_ count: UInt64) async throws {
    let connection = try someConnection()
    let recorder = Recorder()
    var next: UInt64 = 0
    var isSecond = false
    loop.onTurnEnd {
      guard next < count, recorder.order.count == next else { return }
      // The second of the two ends of a turn is the one after which the loop may block.
      isSecond.toggle()
      guard !isSecond else { return }
      var command = RedisCommand()
      command.begin("PING")
      _ = connection.send(command, to: recorder, tag: next)
      next += 1
    }
    await recorder.wait(for: Int(count))
  }
}
