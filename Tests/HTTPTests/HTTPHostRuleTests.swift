import Testing

@testable import HTTP

@Suite struct HTTPHostRuleTests {
  @Test(arguments: [
    (["api.example.com"], "https://api.example.com/a?b"), (["API.Example.COM."], "https://api.example.com"),
    (["api.example.com"], "https://API.EXAMPLE.com./"), (["api.example.com"], "https://api.example.com:443/"),
    (["api.example.com"], "http://api.example.com/"), (["api.example.com"], "http://api.example.com:80"),
    (["api.example.com:8443"], "https://api.example.com:8443/"), (["*.example.com"], "https://a.example.com/"),
    (["*.example.com"], "https://a.b.example.com/"), (["*.Example.com:81"], "http://x.example.com:81/"),
    (["xn--bcher-kva.example"], "https://XN--BCHER-KVA.example/"), (["192.0.2.1"], "https://192.0.2.1/"),
    (["[2001:db8::1]"], "https://[2001:DB8:0::1]/"), (["[2001:db8::1]:99"], "https://[2001:db8::1]:99/"),
    (["a.example", "b.example"], "https://b.example/"), (["localhost:1"], "http://localhost:1/"), (["a_b.example"], "https://a_b.example/"),
  ])
  func whatAPatternNamesIsAdmitted(patterns: [String], url: String) throws {
    #expect(try HTTPHostRule(patterns).admits(HTTPURL(url)))
  }

  @Test(arguments: [
    ([], "https://example.com/"), (["api.example.com"], "https://example.com/"), (["api.example.com"], "https://x.api.example.com/"),
    (["api.example.com"], "https://api.example.com.evil.net/"), (["api.example.com"], "https://api.example.com:8443/"),
    (["api.example.com:8443"], "https://api.example.com/"), (["api.example.com"], "http://api.example.com:443/"),
    (["*.example.com"], "https://example.com/"), (["*.example.com"], "https://badexample.com/"),
    (["*.example.com"], "https://a.example.com:81/"), (["*.0.2.1.example"], "https://192.0.2.1/"),
    (["192.0.2.1"], "https://[::ffff:192.0.2.1]/"),
  ])
  func anythingElseIsNot(patterns: [String], url: String) throws {
    #expect(try !HTTPHostRule(patterns).admits(HTTPURL(url)))
  }

  @Test(arguments: [
    ("", "labels"), (".", "labels"), ("*", "only"), ("*.", "labels"), ("*.com", "top-level"), ("*.192.0.2.1", "name only"),
    ("a.*.example.com", "only"), ("*example.com", "only"), ("https://a.example", "port"), ("a.example/", "only"), ("a..example", "labels"),
    ("a.example:0", "port"), ("a.example:65536", "port"), ("a.example:", "port"), ("a.example:+1", "port"), ("u@a.example", "user"),
    ("bücher.example", "xn--"), ("a b.example", "only"), ("a.example\r\n", "only"), ("2001:db8::1", "port"), ("[2001:db8::1", "closed"),
    ("[192.0.2.1]", "IPv6"), ("[fe80::1%1]", "zone"), ("192.0.2", "four"), ("300.0.0.1", "four"), ("0x7f.0.0.0x1", "four"),
    ("2130706433", "four"), (String(repeating: "a", count: 64), "labels"), (String(repeating: "a.", count: 128), "labels"),
  ])
  func whatIsNoPatternSaysWhy(pattern: String, reason: String) {
    do {
      let rule = try HTTPHostRule(["good.example", pattern])
      Issue.record("'\(pattern)' was read as \(rule)")
    } catch {
      #expect(error.description.contains(reason), "\(error)")
      #expect(!error.description.contains("\n"))
    }
  }
}
