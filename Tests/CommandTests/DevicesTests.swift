import JSON
import Redis
import TestSupport
import Testing
import Worker

@testable import Command

/// `carillon devices`, over what workers have put into Redis, and over what may lie there.
@Suite struct DevicesTests {
  private static let application = "com.example.shop"

  private static func token(_ number: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: 64 - digits.count) + digits
  }

  @Test(.onlyInAll("the other tests of this suite read what workers write"))
  func `a person's devices are listed with where they are connected and what waits`() async throws {
    try await WorkerPair.with { pair in
      let (connected, away) = (String(repeating: "a", count: 64), String(repeating: "b", count: 64))
      let device = try pair.device(connected, user: "ada")
      _ = try await device.firstLine()
      try await pair.register(away, user: "ada")
      try await pair.publish((0..<3).map { _ in WorkerPair.request("device:\(away)") })
      func devices(_ words: String...) async throws -> [JSONValue] {
        let result = try await pair.carillon.run(["devices", "--redis", pair.redisAddress, "--json"] + words)
        #expect(result.status == 0, "it said: \(result.errors)")
        return try result.lines.map { try JSONValue(parsing: $0) }
      }
      try await pair.eventually("all is told") {
        let told = try await devices("--user", "ada")
        guard told.count == 2 else { return false }
        return told[0]["device"]?.stringValue == connected && told[0]["connected"] == true
          && told[0]["lanes"]?[0]?.stringValue?.hasSuffix("/0") == true && told[0]["notifications"]?.integerValue == 0
          && told[1]["device"]?.stringValue == away && told[1]["connected"] == false && told[1]["notifications"]?.integerValue == 3
          && told[1]["oldest"] != nil && told[1]["mailboxBound"]?.integerValue == 100 && told[1]["beyondBound"]?.integerValue == 0
          && told.allSatisfy { $0["application"]?.stringValue == WorkerPair.application && $0["user"] == "ada" && $0["since"] != nil }
          && told.allSatisfy { $0["registration"]?["offset"] != nil }
      }
      #expect(try await devices("--user", "ada", "--app", WorkerPair.application).count == 2)
      #expect(try await devices("--device", away.uppercased()).map { $0["user"]?.stringValue } == ["ada"])
      let none = try await pair.carillon.run(["devices", "--redis", pair.redisAddress, "--user", "ada", "--app", "com.example.shpo"])
      #expect(none.status == 1 && none.errors.contains("ada has no registered device for com.example.shpo"), "it said: \(none.errors)")
      let text = try await pair.carillon.run(["devices", "--redis", pair.redisAddress, "--user", "ada"]).output
      #expect(text.contains("connected at ") && text.contains("3 notifications wait, the oldest "), "it said: \(text)")
      #expect(text.contains("registration=devices/") && text.contains("not connected"), "it said: \(text)")
      try await device.stop()
    }
  }

  // MARK: A Redis that a test fills

  private struct Place: Sendable {
    let carillon: CarillonCommand
    let redis: RedisProbe
    let address: String

    func run(_ words: String...) async throws -> CarillonCommand.Result {
      try await carillon.run(["devices", "--redis", address, "--buckets", "1"] + words)
    }

    /// Registers devices as a worker does, all in one bucket.
    func register(_ tokens: [String], user: String, _ application: String = DevicesTests.application) async throws {
      let script = """
        for i = 2, #ARGV do
          redis.call('HSET', 'd{0}' .. ARGV[i], 'u', string.rep('\\1', 24), 'a', ARGV[1], 'r', string.rep('\\0', 20), 'l', 'de_AT')
          redis.call('ZADD', ARGV[1], 0, ARGV[i])
        end
        return 0
        """
      for start in stride(from: 0, to: tokens.count, by: 1_000) {
        let some = tokens[start..<min(start + 1_000, tokens.count)]
        try await redis.send(["EVAL", .text(script), "0", .text("u{0}\(application)/\(user)")] + some.map { .text($0) })
      }
    }
  }

  private func withPlace(settings: [String] = [], _ body: @Sendable (Place) async throws -> Void) async throws {
    try await CarillonCommand.with { carillon in
      try await withRedis(listening: .port(nil), settings: settings) { server in
        try await RedisProbe.with(server.address) { redis in
          try await redis.command("HSET", "k{0}", "i", "1")
          try await body(Place(carillon: carillon, redis: redis, address: server.address.description))
        }
      }
    }
  }

  @Test func `people and applications whose names look like patterns are told apart`() async throws {
    try await withPlace { place in
      let names = ["a*b", "ab", "axb", "x/a*b", #"a[b]\^?"#, "*"]
      for (number, name) in names.enumerated() { try await place.register([Self.token(number)], user: name) }
      try await place.register([Self.token(90)], user: "a*b", "com.example.mail")
      for (number, name) in names.enumerated() {
        let result = try await place.run("--user", name, "--json")
        let told = try result.lines.map { try JSONValue(parsing: $0) }
        let wanted = number == 0 ? [Self.token(0), Self.token(90)] : [Self.token(number)]
        #expect(Set(told.compactMap { $0["device"]?.stringValue }) == Set(wanted))
        #expect(told.allSatisfy { $0["user"]?.stringValue == name && $0["locale"] == "de_AT" }, "it said: \(result.output)")
      }
    }
  }

  @Test(.onlyInAll("it is many devices"))
  func `of very many devices as many are listed as were asked for, and it says that there are more`() async throws {
    try await withPlace { place in
      try await place.register((0..<3_000).map(Self.token), user: "ada")
      let some = try await place.run("--user", "ada", "--limit", "200")
      #expect(some.status == 0 && some.lines.count == 200, "it said: \(some.errors)")
      #expect(some.errors.contains("there are more than 200 devices"), "it said: \(some.errors)")
      let all = try await place.run("--user", "ada", "--app", Self.application, "--limit", "3000")
      #expect(all.lines.count == 3_000 && Set(all.lines).count == 3_000 && !all.errors.contains("there are more"))
    }
  }

  @Test func `what is no device of the person is left out, and counted`() async throws {
    try await withPlace { place in
      try await place.register([Self.token(1), Self.token(2)], user: "ada")
      // It was handed on, and the former person's set was not changed yet; and what somebody else has put there.
      try await place.register([Self.token(2)], user: "bob")
      try await place.redis.command("ZADD", .text("u{0}\(Self.application)/ada"), "0", "nonsense")
      let result = try await place.run("--user", "ada")
      #expect(result.lines.count == 1 && result.output.hasPrefix(Self.token(1)), "it said: \(result.output)")
      #expect(result.errors.contains("2 left out"), "it said: \(result.errors)")
      try await place.redis.command("SET", .text("d{0}\(Self.token(3))"), "something else")
      let other = try await place.run("--device", Self.token(3))
      #expect(other.status == 3 && other.errors.contains("d{0}\(Self.token(3))"), "it said: \(other.errors)")
    }
  }

  @Test func `a lane that is gone, a full mailbox and what was evicted are told`() async throws {
    try await withPlace { place in
      let token = Self.token(1)
      try await place.register([token], user: "ada")
      let revisions = ["\u{0}\u{0}\u{1}", "\u{0}\u{0}\u{2}"].map { $0 + String(repeating: "\u{0}", count: 17) }
      try await place.redis.command(
        "HSET", .text("d{0}\(token)"), "p", .bytes([0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1]), "g", .text(revisions.joined()))
      let text = try await place.run("--device", token)
      #expect(text.output.contains("was connected at a lane that is gone (deliveries/7)"), "it said: \(text.output)")
      #expect(text.output.contains("nothing waits") && text.output.contains("evicted since the device was told last: from "))
      try await place.redis.command("ZADD", "lanes", "99999999999999", "7:fan-out-1/0")
      // A machine that stands still for seconds makes the lane old before it is asked for.
      await eventually("the device is connected") {
        let now = try await place.redis.command("TIME").array?.first?.text ?? "0"
        try await place.redis.command("ZADD", "lanes", .text(now + "000"), "7:fan-out-1/0")
        return try await place.run("--device", token).output.contains(" connected at fan-out-1/0")
      }
    }
  }

  @Test func `where Redis is being rebuilt or has lost something it says that devices may be missing`() async throws {
    try await withPlace { place in
      try await place.register([Self.token(1)], user: "ada")
      #expect(try await !place.run("--user", "ada").errors.contains("may be missing"))
      try await place.redis.command("SET", "rebuild", "somebody", "PX", "600000")
      let rebuilt = try await place.run("--user", "ada")
      #expect(rebuilt.status == 0 && rebuilt.errors.contains("may be missing"), "it said: \(rebuilt.errors)")
      try await place.redis.command("DEL", "rebuild", "k{0}")
      let lost = try await place.run("--user", "bob")
      #expect(lost.status == 1 && lost.errors.contains("may be missing"), "it said: \(lost.errors)")
      try await place.redis.command("HSET", "cluster", "kafka", "k", "prefix", "p.", "buckets", "512")
      let other = try await place.run("--user", "ada")
      #expect(other.status == 2 && other.errors.contains("give --buckets 512"), "it said: \(other.errors)")
    }
  }

  /// By a user that may write nothing.
  @Test func `it reads and never writes`() async throws {
    try await withPlace(settings: ["--user", "reader", "on", ">pass", "~*", "+@all", "-@write"]) { place in
      try await place.register([Self.token(1)], user: "ada")
      let port = place.address.split(separator: ":").last.map(String.init) ?? ""
      for words in [["--user", "ada"], ["--user", "ada", "--app", Self.application], ["--device", Self.token(1)]] {
        let result = try await place.carillon.run(
          ["devices", "--redis", "redis://reader:pass@127.0.0.1:\(port)", "--buckets", "1"] + words)
        #expect(result.status == 0 && result.lines.count == 1, "it said: \(result.errors)")
      }
    }
  }

  @Test(
    arguments: [
      ([], "which devices? give --user ID"), (["--user", "a", "--device", token(1)], "--user and --device exclude each other"),
      (["--device", token(1), "--app", "a"], "--app is for --user"), (["--device", "short"], "a device token"),
    ] as [([String], String)])
  func whatIsAskedMustBeOneThing(arguments: [String], text: String) async throws {
    let refusal = try await Typed.refusal(["devices", "--redis", "127.0.0.1:1"] + arguments)
    #expect(refusal.code == .wrongUsage && refusal.text.contains(text), "it says: \(refusal.text)")
  }
}
