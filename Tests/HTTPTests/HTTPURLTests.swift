import EventLoop
import Testing

@testable import HTTP

@Suite struct HTTPURLTests {
  @Test(arguments: [
    ("ws://127.0.0.1:9000/v1/device", "127.0.0.1", 9000, "/v1/device"),
    ("WS://example.com", "example.com", 80, "/"),
    ("ws://[::1]:9000/a?b=c&d", "::1", 9000, "/a?b=c&d"),
    ("ws://[::1]", "::1", 80, "/"), ("WSS://example.com", "example.com", 443, "/"),
    ("ws://example.com?x", "example.com", 80, "/?x"),
    ("http://a-b_c.d:65535/%20", "a-b_c.d", 65535, "/%20"),
    ("https://Example.com./a#b", "example.com", 443, "/a"),
  ])
  func wellFormedIsTakenApart(text: String, host: String, port: Int, target: String) throws {
    let url = try HTTPURL(text)
    #expect(url.address == SocketAddress(host: host, port: port))
    #expect(url.target == target)
  }

  @Test(arguments: [
    ("https://example.com", "https://example.com/"), ("HTTPS://Example.COM.:443/A?B", "https://example.com/A?B"),
    ("http://example.com:443/", "http://example.com:443/"), ("https://example.com?x=1#f", "https://example.com/?x=1"),
    ("https://example.com/a#?@b", "https://example.com/a"), ("https://[::1]:8443/a", "https://[::1]:8443/a"),
    ("https://[0:0::ffff:127.0.0.1]/", "https://[::ffff:127.0.0.1]/"), ("https://127.0.0.1/a@b", "https://127.0.0.1/a@b"),
    ("https://1a.example/", "https://1a.example/"), ("https://0xyz/", "https://0xyz/"), ("ws://example.com:80", "ws://example.com/"),
  ])
  func wellFormedHasOneForm(text: String, form: String) throws {
    let url = try HTTPURL(text)
    #expect(url.description == form)
    #expect(try HTTPURL(form) == url)
  }

  @Test(arguments: [
    ("", "scheme"), ("example.com", "scheme"), ("a:80", "scheme"), ("//example.com/", "scheme"), ("https:example.com", "://"),
    ("ws:/a", "://"), ("ws://", "host"), ("https:///a", "host"), ("ws://?", "host"), ("https://:443/", "host"), ("ws://a:", "port"),
    ("https://example.com:0/", "port"), ("ws://a:65536", "port"), ("https://example.com:8o/", "port"), ("ws://a:-1", "port"),
    ("ws://a:+80", "port"), ("ws://::1/", "host"), ("ws://[::1/", "bracket"), ("https://[::1]x/", "colon"), ("https://[]/", "IPv6"),
    ("https://[fe80::1%25eth0]/", "zone"), ("https://[127.0.0.1]/", "IPv6"), ("wss://a/#f", "fragment"),
    ("https://user@example.com/", "user"), ("https://user:secret@example.com/", "user"), ("https://@example.com/", "user"),
    ("https://good.example\\@evil.example/", "user"), ("https://good.example\\.evil.example/", "host"), ("ws://exa mple.com/", "percent"),
    ("https://example.com/a b", "percent"), ("ws://a/\r\nX: y", "percent"), ("https://example.com/\u{0}", "percent"),
    ("https://bücher.example/", "xn--"), ("https://example.com/ü", "percent"), ("https://ex%61mple.com/", "host"),
    ("https://a..example/", "labels"), ("https://127.1/", "number"), ("https://2130706433/", "number"), ("https://0x7f000001/", "number"),
    ("https://0177.0.0.1/", "number"), ("https://127.0.0.1.1/", "number"), ("https://1.2.3.0x4/", "number"), ("ws://a!b/", "host"),
    ("https://*.example.com/", "host"), ("https://example.com/" + String(repeating: "a", count: 8192), "longer"),
  ])
  func anythingElseIsRefusedWithoutRepeatingIt(text: String, reason: String) {
    do {
      let url = try HTTPURL(text)
      Issue.record("'\(text)' was read as \(url)")
    } catch {
      #expect(error.description.contains(reason) && !error.isOfScheme, "\(error)")
      #expect(!error.description.contains("secret") && !error.description.contains("\n"))
    }
  }

  @Test(arguments: [
    "ftp://a.example/", "file:///etc/passwd", "gopher://a.example/", "wsss://a.example/",
  ])
  func otherSchemesAreRefused(text: String) {
    do {
      let url = try HTTPURL(text)
      Issue.record("'\(text)' was read as \(url)")
    } catch {
      #expect(error.description.contains("https, http, wss and ws") && error.isOfScheme, "\(error)")
    }
  }

  @Test(arguments: [
    ("ftp://a.example/", HTTPClientError.Code.schemeRefused), ("wss://a.example/", .schemeRefused), ("http://a.example/", .schemeRefused),
    ("https://secret@a.example/", .invalidURL), ("a.example", .invalidURL), ("https://b.example/", .hostRefused),
  ])
  func `a client says which rule its URL breaks and does not repeat the URL`(text: String, code: HTTPClientError.Code) throws {
    let configuration = HTTPClientConfiguration(hosts: try HTTPHostRule(["a.example"]))
    do {
      let url = try configuration.admit(text)
      Issue.record("'\(text)' was read as \(url)")
    } catch {
      #expect(error.code == code && !error.isRetriable)
      #expect(!error.description.contains("secret"))
    }
  }
}
