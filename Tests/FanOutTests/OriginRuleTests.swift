import Testing

@testable import FanOut

/// Which pages may open the device socket.
@Suite struct OriginRuleTests {
  private func passes(_ origin: String, _ host: String?, allowed: Set<String> = []) -> Bool {
    OriginRule(allowed: allowed).refusal(of: [origin], host: host) == nil
  }

  @Test(arguments: [
    ("http://127.0.0.1:7171", "127.0.0.1:7171"), ("http://localhost:7171", "localhost:7171"), ("http://LOCALHOST:7171", "Localhost:7171"),
    ("http://[::1]:7171", "[::1]:7171"), ("http://[0:0::1]:7171", "[::1]:7171"), ("https://192.0.2.7", "192.0.2.7"),
    ("https://192.0.2.7", "192.0.2.7:443"), ("http://192.0.2.7:80", "192.0.2.7"), ("https://[2001:db8::7]", "[2001:DB8::7]"),
  ])
  func `a page of the address that was connected to passes`(_ origin: String, _ host: String) { #expect(passes(origin, host)) }

  @Test(arguments: [
    ("http://127.0.0.1:7171", "127.0.0.1:7172"), ("http://127.0.0.1:7171", "localhost:7171"), ("http://127.0.0.2:7171", "127.0.0.1:7171"),
    ("http://localhost", "localhost:7171"), ("https://localhost:443", "localhost:80"), ("http://localhost:3000", "localhost:7171"),
    // A name may be rebound.
    ("http://evil.example:7171", "evil.example:7171"), ("http://x.localhost:7171", "x.localhost:7171"),
    ("http://localhost.evil.example:7171", "localhost.evil.example:7171"), ("http://127.0.0.1.evil.example", "127.0.0.1.evil.example"),
    // What no browser would write for this address.
    ("http://2130706433:7171", "2130706433:7171"), ("http://0x7f.1", "0x7f.1"), ("ftp://127.0.0.1:7171", "127.0.0.1:7171"),
    ("127.0.0.1:7171", "127.0.0.1:7171"), ("http://127.0.0.1:7171/", "127.0.0.1:7171"), ("http://user@127.0.0.1:7171", "127.0.0.1:7171"),
    ("null", "127.0.0.1:7171"), ("", "127.0.0.1:7171"), ("://", "127.0.0.1"), ("http://", ""), ("http://127.0.0.1", nil),
  ])
  func `a page of anything else does not`(_ origin: String, _ host: String?) { #expect(!passes(origin, host)) }

  @Test func `what is listed passes wherever it connects to, and every value counts`() {
    let rule = OriginRule(allowed: ["https://app.example.com"])
    #expect(rule.refusal(of: ["HTTPS://App.example.com"], host: "push.example.com") == nil)
    #expect(rule.refusal(of: [], host: nil) == nil)
    #expect(rule.refusal(of: ["https://app.example.com", "https://evil.example"], host: "push.example.com") != nil)
    #expect(rule.refusal(of: ["http://127.0.0.1:1", "https://app.example.com"], host: "127.0.0.1:1") == nil)
    #expect(passes("null", "a", allowed: ["*"]) && passes("https://evil.example", nil, allowed: ["*"]))
  }

  @Test func `a refusal says what to set`() {
    let rule = OriginRule(allowed: [])
    #expect(
      rule.refusal(of: ["https://push.example.com"], host: "push.example.com")
        == "The origin https://push.example.com may not connect: --allowed-origins https://push.example.com admits it.\n")
    #expect(rule.refusal(of: ["null"], host: "localhost")?.contains("only --allowed-origins '*' admits it") == true)
    let long = rule.refusal(of: ["\u{1B}[2J" + String(repeating: "x", count: 10_000)], host: nil)
    #expect(long.map { $0.utf8.count < 1_000 && !$0.contains("\u{1B}") } == true)
  }

  @Test func `a refusal is logged once for each origin, and only so many are`() {
    var told = ToldRefusals()
    let numbers = (0...ToldRefusals.maximum).flatMap { [$0, $0] }
    let logged = numbers.filter { told.isNew("\($0)") }
    #expect(logged == Array(0..<ToldRefusals.maximum))
  }
}
