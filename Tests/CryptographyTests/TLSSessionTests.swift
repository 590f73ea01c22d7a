import TestSupport
import Testing

@testable import Cryptography

/// Two sessions, and the bytes that are on their way between them.
private final class Conversation {
  let client: TLSSession
  let server: TLSSession
  private(set) var toServer: [UInt8] = []
  private(set) var toClient: [UInt8] = []
  private(set) var atServer: [UInt8] = []
  private(set) var atClient: [UInt8] = []
  private var random: SeededRandom
  private let splits: Bool

  init(_ client: TLSSession, _ server: TLSSession, splits: Bool = false, seed: UInt64 = 1) {
    (self.client, self.server, self.splits) = (client, server, splits)
    random = SeededRandom(seed: seed)
    toServer = Self.output(of: client)
  }

  static func output(of session: TLSSession) -> [UInt8] { session.takeOutput { Array($0) } ?? [] }

  /// The next bytes of a direction: all, or a random part.
  private func next(_ bytes: inout [UInt8]) -> [UInt8] {
    let count = splits ? Int.random(in: 1...min(bytes.count, 700), using: &random) : bytes.count
    defer { bytes.removeFirst(count) }
    return Array(bytes.prefix(count))
  }

  /// Carries bytes in both directions until none is left.
  func run() {
    while !toServer.isEmpty || !toClient.isEmpty {
      if !toServer.isEmpty {
        next(&toServer).withUnsafeBytes { server.receive($0) { atServer += $0 } }
        toClient += Self.output(of: server)
      }
      if !toClient.isEmpty {
        next(&toClient).withUnsafeBytes { client.receive($0) { atClient += $0 } }
        toServer += Self.output(of: client)
      }
    }
  }

  func send(_ bytes: [UInt8], fromClient: Bool = false) -> Bool {
    let session = fromClient ? client : server
    let isSent = bytes.withUnsafeBytes { session.send($0) }
    if fromClient { toServer += Self.output(of: session) } else { toClient += Self.output(of: session) }
    return isSent
  }

  func finishServer() {
    server.finish()
    toClient += Self.output(of: server)
  }

  /// Damages the bytes for the server.
  func damage() { toServer[toServer.count / 2] ^= 0x20 }
  /// Loses the bytes for the server from a place on.
  func lose(after count: Int) { toServer.removeLast(toServer.count - count) }
  func inject(_ text: String) { toServer = Array(text.utf8) }
}

@Suite struct TLSSessionTests {
  private let secrets = ring([7])

  private func identity(_ pair: TestCertificates.Pair) throws -> InForce<TLSIdentity> {
    InForce<TLSIdentity>(try TLSIdentity(certificates: Array(pair.certificate.utf8), key: Array(pair.key.utf8)))
  }

  private func contexts(
    offers: [String] = ["http/1.1"], version: Int32? = nil, now: (() -> Int)? = nil
  ) async throws -> (client: TLSContext, server: TLSContext) {
    let certificates = try await TestCertificates.shared.value
    return (
      try TLSContext(authorities: Array(certificates.authority.utf8), protocols: offers, version: version),
      try TLSContext(server: identity(certificates.good), ticketSecrets: secrets, protocols: ["http/1.1"], now: now)
    )
  }

  private func failure(of session: TLSSession) -> TLSError.Code? {
    if case .failed(let error)? = session.end { error.code } else { nil }
  }

  @Test(arguments: [false, true], ["TLSv1.2", "TLSv1.3"])
  func bytesGoBothWays(splits: Bool, version: String) async throws {
    let (client, server) = try await contexts(version: version == "TLSv1.2" ? 0x0303 : 0x0304)
    for seed in 0..<(splits ? 20 : 1) as Range<UInt64> {
      let both = Conversation(client.connect(host: "good.test", isNumeric: false, port: 1), server.accept(), splits: splits, seed: seed)
      both.run()
      #expect(both.client.isReady && both.server.isReady)
      #expect(both.client.version == version && both.server.version == version)
      #expect(both.server.applicationProtocol == "http/1.1" && both.client.applicationProtocol == "http/1.1")
      let sizes = [1, 300, 16_384, 16_385, 65_536]
      for size in sizes {
        let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        #expect(both.send(bytes) && both.send(bytes, fromClient: true))
      }
      both.run()
      let sent = sizes.flatMap { (0..<$0).map { UInt8(truncatingIfNeeded: $0) } }
      #expect(both.atClient == sent && both.atServer == sent)
      both.finishServer()
      both.run()
      #expect(both.client.end == .peerClosed)
      // The other direction is still open.
      #expect(both.send([1], fromClient: true))
      both.run()
      #expect(both.atServer.last == 1 && both.server.end == nil)
    }
  }

  @Test func aSessionIsResumedAlsoByAnotherWorkerOfTheSameSecret() async throws {
    var day = 20_000
    let (client, server) = try await contexts(now: { day * 86_400 })
    let other = try await contexts(now: { day * 86_400 }).server
    func resumes(_ server: TLSContext) -> Bool {
      let both = Conversation(client.connect(host: "127.0.0.1", isNumeric: true, port: 1), server.accept())
      both.run()
      #expect(both.client.isReady && both.client.isResumed == both.server.isResumed)
      return both.server.isResumed
    }
    #expect(!resumes(server))
    #expect(resumes(server) && resumes(other))
    day += 1
    #expect(resumes(other), "a ticket of yesterday is taken")
    day += 2
    #expect(!resumes(server), "an older one is not")
    #expect(resumes(server))
    secrets.replace(with: ring([8, 7]).value)
    #expect(resumes(server), "a ticket of the former secret is taken")
    secrets.replace(with: ring([8]).value)
    #expect(resumes(server), "the first secret has made the ticket that replaced it")
    let stranger = try TLSContext(
      server: identity(try await TestCertificates.shared.value.good), ticketSecrets: ring([1]), protocols: ["http/1.1"])
    #expect(!resumes(stranger))
  }

  @Test func certificatesThatMustNotBeTrustedAreRefusedByName() async throws {
    let certificates = try await TestCertificates.shared.value
    func refusal(_ pair: TestCertificates.Pair, authorities: [UInt8]?, host: String = "localhost", isNumeric: Bool = false) throws
      -> (TLSError.Code?, server: TLSError.Code?)
    {
      let client = try TLSContext(authorities: authorities, protocols: ["http/1.1"])
      let server = try TLSContext(server: identity(pair), ticketSecrets: secrets, protocols: ["http/1.1"])
      let both = Conversation(client.connect(host: host, isNumeric: isNumeric, port: 1), server.accept())
      both.run()
      return (failure(of: both.client), failure(of: both.server))
    }
    let authorities = Array(certificates.authority.utf8)
    #expect(try refusal(certificates.good, authorities: authorities) == (nil, nil))
    #expect(try refusal(certificates.good, authorities: authorities, host: "127.0.0.1", isNumeric: true) == (nil, nil))
    #expect(try refusal(certificates.expired, authorities: authorities) == (.expired, .alert))
    #expect(try refusal(certificates.other, authorities: authorities) == (.wrongName, .alert))
    #expect(try refusal(certificates.good, authorities: authorities, host: "127.0.0.2", isNumeric: true) == (.wrongName, .alert))
    #expect(try refusal(certificates.good, authorities: nil) == (.unknownAuthority, .alert))
  }

  @Test func whatIsNoTLSAndWhatIsTooOldIsRefused() async throws {
    let (client, server) = try await contexts()
    func refusal(_ prepare: (Conversation) -> Void) -> (TLSError.Code?, alerts: Bool) {
      let both = Conversation(client.connect(host: "localhost", isNumeric: false, port: 2), server.accept())
      prepare(both)
      both.run()
      return (failure(of: both.server), both.client.end != nil)
    }
    #expect(refusal { $0.inject("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }.0 == .plainHTTP)
    #expect(refusal { $0.inject("garbage of some length") }.0 == .violation)
    #expect(refusal { $0.lose(after: 100) } == (nil, false))
  }

  @Test func anOfferWithoutOurProtocolIsRefused() async throws {
    let (client, server) = try await contexts(offers: ["h2"])
    let both = Conversation(client.connect(host: "localhost", isNumeric: false, port: 1), server.accept())
    both.run()
    #expect(failure(of: both.server) == .nothingInCommon && failure(of: both.client) != nil)
  }

  @Test(arguments: 0..<50 as Range<UInt64>) func damagedBytesEndTheSessionAndNothingElse(seed: UInt64) async throws {
    let (client, server) = try await contexts()
    let both = Conversation(client.connect(host: "localhost", isNumeric: false, port: 1), server.accept(), splits: true, seed: seed)
    both.run()
    #expect(both.send([UInt8](repeating: 1, count: 1 + Int(seed) * 100), fromClient: true))
    both.damage()
    both.run()
    #expect(failure(of: both.server) == .violation && both.atServer.isEmpty)
    #expect(!both.send([1]))
  }

  @Test func anotherCertificateIsUsedFromTheNextSessionOn() async throws {
    let certificates = try await TestCertificates.shared.value
    let client = try TLSContext(authorities: Array(certificates.authority.utf8), protocols: [])
    let present = try identity(certificates.good)
    let server = try TLSContext(server: present, ticketSecrets: secrets, protocols: ["http/1.1"])
    let first = Conversation(client.connect(host: "localhost", isNumeric: false, port: 1), server.accept())
    first.run()
    present.replace(with: try identity(certificates.other).value)
    let second = Conversation(client.connect(host: "localhost", isNumeric: false, port: 2), server.accept())
    second.run()
    #expect(failure(of: second.client) == .wrongName)
    #expect(first.send([1, 2, 3]))
    first.run()
    #expect(first.atClient == [1, 2, 3], "the open session goes on")
  }

  @Test func aChainEndsWithTheFirstOfItsCertificates() async throws {
    let certificates = try await TestCertificates.shared.value
    let (good, expired) = (certificates.good, certificates.expired)
    func end(_ text: String) throws -> Int64 {
      try TLSIdentity(certificates: Array(text.utf8), key: Array(good.key.utf8)).expires
    }
    #expect(try end(good.certificate + certificates.authority) > end(good.certificate + expired.certificate))
  }

  @Test func filesThatCannotBeUsedAreRefusedWithTheReason() async throws {
    let certificates = try await TestCertificates.shared.value
    func refusal(_ certificate: String, _ key: String) -> TLSError? {
      do throws(TLSError) {
        _ = try TLSIdentity(certificates: Array(certificate.utf8), key: Array(key.utf8))
        return nil
      } catch { return error }
    }
    let good = certificates.good
    #expect(refusal(good.certificate, good.key) == nil)
    #expect(refusal(good.certificate + certificates.authority, good.key) == nil)
    #expect(refusal("", good.key)?.code == .badCertificate)
    #expect(refusal("nothing\n", good.key)?.code == .badCertificate)
    #expect(refusal(String(good.certificate.dropFirst(200)), good.key)?.code == .badCertificate)
    #expect(refusal(good.certificate.replacing("MII", with: "M!I"), good.key)?.code == .badCertificate)
    #expect(refusal(good.certificate, "")?.code == .badKey)
    #expect(refusal(good.certificate, good.certificate)?.code == .badKey)
    #expect(refusal(good.certificate, certificates.other.key)?.description.contains("not the key of the certificate") == true)
    #expect(throws: TLSError.self) { try TLSContext(authorities: [], protocols: []) }
  }
}
