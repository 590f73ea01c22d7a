import Cryptography
import EventLoop
import Glibc
import Redis
import TestSupport
import Testing

private let quick = Backoff(firstMilliseconds: 5, longestMilliseconds: 50)

/// A real server that takes TLS at one port, and connections without it at another.
@Suite struct TLSTests {
  enum Kind { case good, other, expired }

  /// The first error of a client.
  private static func error(_ configuration: RedisConfiguration) async throws -> RedisError? {
    try await withClient(configuration) { client in await #expect(throws: RedisError.self) { try await client.open() } }
  }

  @Test(arguments: ["127.0.0.1", "localhost"])
  func commandsOfAnySizeGoThroughAndALostServerIsFoundAgain(_ host: String) async throws {
    try await withSecureRedis { server, address, _ in
      guard case .tcp(_, let port) = address.endpoint else { return }
      var configuration = RedisConfiguration(address, backoff: quick, scripts: [ScriptTests.add]).patient
      configuration.address.endpoint = .tcp(host: host, port: port)
      try await withClient(configuration) { client in
        try await client.open()
        // While the server stands still, the kernel takes only the first part.
        await server.signal(SIGSTOP)
        let value = String(repeating: "0123456789abcdef", count: 64 << 10)
        _ = await client.send(0..<30) { command, tag in
          command.begin("SET")
          command.append("k\(tag)")
          command.append(value + "\(tag)")
        }
        _ = await client.send(30..<1_030) { command, _ in
          command.begin("INCR")
          command.append("n")
        }
        await server.signal(SIGCONT)
        let outcomes = await client.outcomes(of: 1_030)
        #expect(outcomes.values.allSatisfy { $0.count == 1 && failure($0.first) == nil })
        #expect(success(outcomes[1_029]?.first) == .integer(1_000))
        for tag in 0..<30 { #expect(try await client.command("GET", .text("k\(tag)")).text == value + "\(tag)") }

        await server.kill()
        #expect(await client.wait { $0.events.contains("failed") })
        try await server.launch(deadlineMilliseconds: hangMilliseconds)
        try await client.waitUntilUp()
        #expect(try await client.call(ScriptTests.add, ["n"], [1]) == .integer(1))
        #expect(await client.events.filter { $0 != "failed" } == ["up", "down", "up"])
      }
    }
  }

  @Test(arguments: [
    (Kind.expired, true, "the peer's certificate has expired; replace the certificate"),
    (.other, true, "for another name; write a name of its certificate"),
    (.good, false, "no known authority has signed the peer's certificate"),
  ])
  func aCertificateThatCannotBeTrustedIsRefusedWithWhatToDo(_ kind: Kind, isKnown: Bool, _ reason: String) async throws {
    let certificates = try await TestCertificates.shared.value
    let pair =
      switch kind {
      case .good: certificates.good
      case .other: certificates.other
      case .expired: certificates.expired
      }
    try await withSecureRedis(pair) { _, address, _ in
      var address = address
      if !isKnown { address.tls = RedisTLS() }
      let error = try await Self.error(RedisConfiguration(address).patient)
      #expect(error?.code == .tlsFailed && error?.isRetriable == false)
      #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }
  }

  @Test func aServerThatAsksForACertificateGetsIt() async throws {
    let pair = try await TestCertificates.shared.value.next
    try await withSecureRedis(asksClients: true) { _, address, _ in
      var address = address
      let error = try await Self.error(RedisConfiguration(address, backoff: quick).patient)
      #expect(error?.message.contains("give --redis-certificate and --redis-key") == true, "\(error?.message ?? "")")
      address.tls?.identity = try TLSIdentity(certificates: Array(pair.certificate.utf8), key: Array(pair.key.utf8))
      try await withClient(RedisConfiguration(address).patient) { client in
        try await client.open()
        #expect(try await client.command("PING") == .status("PONG"))
      }
    }
  }

  @Test func aPortOfTheOtherKindIsNamed() async throws {
    try await withSecureRedis { server, address, _ in
      // It waits for the end of a line, and says nothing.
      var secured = server.address
      secured.tls = address.tls
      try await withClient(RedisConfiguration(secured, connectDeadlineMilliseconds: 300, backoff: quick)) { client in
        await client.start()
        #expect(await client.wait { $0.attemptErrors.contains { $0.message.contains("does that port take TLS?") } })
        #expect(await client.attemptErrors.allSatisfy { $0.code == .timedOut })
      }
      var plain = address
      plain.tls = nil
      try await withClient(RedisConfiguration(plain, backoff: quick).patient) { client in
        await client.start()
        #expect(await client.wait { !$0.attemptErrors.isEmpty })
        let error = await client.attemptErrors.first
        #expect(error?.message.contains("rediss://") == true, "\(error?.message ?? "")")
      }
    }
  }

  @Test func authoritiesThatAreNoneAreAnErrorOfTheSettings() throws {
    #expect(throws: TLSError.self) { try RedisTLS(authorities: Array("nothing".utf8)).check() }
  }
}
