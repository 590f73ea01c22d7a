import Store
import TestSupport
import Testing

/// Whether Redis is relied on, by random histories of servers that evict, change their settings, restart and are replaced.
@Suite struct ServerTrustTests {
  @Test func everyKeyThatIsThrownAwayIsToldOnceAndNoneWhileTheSettingsAreWrong() {
    for seed in 0..<(isComplete ? 200 : 40) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var trust = ServerTrust()
      var server = Self.server("0", evicted: Int64.random(in: 0...3, using: &random))
      // The model: what was thrown away since somebody looked first, and what was told of it.
      var (lost, told) = (Int64(0), Int64(0))
      #expect(trust.judge(server) == .suitable, "what was thrown away before is not told")
      for step in 0..<100 {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: server.findings[.error] = server.objection == nil ? ["evicts"] : nil
        case 1:
          // A look comes between any two of these, so that nothing is thrown away that no look can see.
          server.runIdentifier = "\(step + 1)"
          server.evictedKeys = 0
        case 2: server.evictedKeys = 0
        case 3, 4:
          let keys = Int64.random(in: 1...9, using: &random)
          server.evictedKeys = (server.evictedKeys ?? 0) + keys
          lost += keys
        default: break
        }
        switch trust.judge(server) {
        case .unsuitable(let reason): #expect(reason == server.objection)
        case .suitable: #expect(server.objection == nil && told == lost, "seed \(seed)")
        case .evicted(let keys):
          #expect(server.objection == nil && keys > 0)
          told += keys
          #expect(told == lost, "seed \(seed)")
        }
      }
    }
  }

  @Test func aServerThatTellsNothingIsNotObjectedTo() {
    var trust = ServerTrust()
    #expect(trust.judge(Self.server(nil)) == .suitable)
    #expect(trust.judge(Self.server(nil, evicted: 4)) == .suitable)
    #expect(trust.judge(Self.server(nil)) == .suitable)
    #expect(trust.judge(Self.server(nil, evicted: 5)) == .evicted(1))
  }

  @Test func whatAnotherServerThrewAwayBeforeItWasAskedIsNotTold() {
    var trust = ServerTrust()
    #expect(trust.judge(Self.server("one", evicted: 0)) == .suitable)
    #expect(trust.judge(Self.server("two", evicted: 7)) == .suitable)
    #expect(trust.judge(Self.server("two", evicted: 9)) == .evicted(2))
    #expect(trust.judge(Self.server("one", evicted: 0)) == .suitable)
  }

  @Test func `keys that are thrown away while something else speaks against the server are told afterwards`() {
    var trust = ServerTrust()
    #expect(trust.judge(Self.server("one", evicted: 0), objection: "clock") == .unsuitable("clock"))
    #expect(trust.judge(Self.server("one", evicted: 3), objection: "clock") == .unsuitable("clock"))
    #expect(trust.judge(Self.server("one", evicted: 3)) == .evicted(3))
  }

  private static func server(_ run: String?, evicted: Int64? = nil) -> ServerState {
    var server = ServerState(address: "127.0.0.1:6379")
    (server.runIdentifier, server.evictedKeys) = (run, evicted)
    return server
  }
}
