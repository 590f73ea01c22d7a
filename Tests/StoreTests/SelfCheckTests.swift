import EventLoop
import Foundation
import Redis
import TestSupport
import Testing

@testable import Store

/// The check of every command and script, on a real Redis whose user may do less and less.
@Suite struct SelfCheckTests {
  private static func with(
    _ body: @escaping @Sendable (_ probe: RedisProbe, _ check: @Sendable () async throws -> String?) async throws -> Void
  )
    async throws
  {
    try await withRedis { server in
      try await RedisProbe.with(server.address) { probe in
        try await probe.command("ACL", "SETUSER", "worker", "on", ">secret", "~*", "+@all")
        var address = server.address
        (address.user, address.password) = ("worker", "secret")
        let checked = Checked(address)
        var failure: (any Error)?
        do {
          try await checked.connect()
          try await body(probe) { try await checked.run() }
        } catch { failure = error }
        await checked.close()
        await checked.loop.close()
        if let failure { throw failure }
      }
    }
  }

  private actor Checked: LoopActor {
    nonisolated let loop = EventLoop(name: "check")
    private let address: RedisAddress
    private var parts: (shards: Shards, check: SelfCheck)?

    init(_ address: RedisAddress) { self.address = address }

    func connect() async throws {
      var configuration = StoreConfiguration(address, buckets: 2)
      configuration.callDeadlineMilliseconds = hangMilliseconds
      let shards = Shards(on: loop, configuration, clientName: "test")
      parts = (shards, SelfCheck(shards))
      shards.start()
      try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    }

    func run() async throws -> String? { try await parts?.check.run() }

    func close() { parts?.shards.close() }
  }

  @Test func `a check of a Redis that allows everything passes and leaves nothing`() async throws {
    try await Self.with { (probe, check) async throws in
      #expect(try await check() == nil)
      #expect(try await check() == nil, "and again")
      #expect(try await probe.command("DBSIZE").integer == 0)
    }
  }

  @Test func `each refused command is told by its name until it is allowed`() async throws {
    try await Self.with { (probe, check) async throws in
      for command in Self.commands {
        try await probe.command("ACL", "SETUSER", "worker", .text("-" + command.lowercased()))
        let told = try #require(try await check(), "\(command) is refused")
        #expect(told.contains(command), "\(told)")
        try await probe.command("ACL", "SETUSER", "worker", .text("+" + command.lowercased()))
        #expect(try await check() == nil, "after \(command)")
      }
    }
  }

  @Test func `a refused key is told`() async throws {
    try await Self.with { (probe, check) async throws in
      try await probe.command("ACL", "SETUSER", "worker", "resetkeys", "~k*", "~m*")
      #expect(try await check()?.contains("NOPERM") == true)
    }
  }

  /// The article is what an operator types.
  @Test func `a user with no more than the article says passes the check`() async throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let article = folder.appending(path: "Sources/carillon/Documentation.docc/Running.md")
    let text = try String(contentsOf: article, encoding: .utf8)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("ACL SETUSER carillon ") })
    let rules = line.split(separator: " ").dropFirst(4).filter { !$0.hasPrefix(">") }
    try await Self.with { (probe, check) async throws in
      try await probe.command("ACL", "SETUSER", "worker", "resetkeys", "-@all")
      for rule in rules { try await probe.command("ACL", "SETUSER", "worker", .text(String(rule))) }
      #expect(try await check() == nil)
    }
    // A connection of such a user may begin, too.
    for command in ["+auth", "+ping", "+client|setname", "+script|load", "+evalsha"] { #expect(rules.contains(Substring(command))) }
  }

  @Test func `a Redis that takes no writes is told as such`() async throws {
    try await Self.with { (probe, check) async throws in
      try await probe.command("CONFIG", "SET", "maxmemory", "1")
      do {
        _ = try await check()
        Issue.record("nothing can be checked now")
      } catch let error as StoreError { #expect(error.code == .writesRefused) }
    }
  }

  /// A command that a script has and no check sends could be refused without being told by its name.
  @Test func `every command of every script is checked`() {
    let checked = Set(Self.commands)
    for script in Shards.scripts {
      for match in script.source.matches(of: /call\('([A-Z]+)'/) {
        #expect(checked.contains(String(match.1)), "\(match.1) is not checked")
      }
    }
  }

  private static var commands: [String] {
    CheckSteps.commands(CheckKeys()).map(\.name) + ["DEL"]
  }
}
