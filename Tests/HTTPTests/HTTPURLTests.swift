import EventLoop
import HTTP
import Testing

@Suite struct HTTPURLTests {
  @Test(arguments: [
    ("ws://127.0.0.1:9000/v1/device", "127.0.0.1", 9000, "/v1/device"),
    ("WS://example.com", "example.com", 80, "/"),
    ("ws://[::1]:9000/a?b=c&d", "::1", 9000, "/a?b=c&d"),
    ("ws://[::1]", "::1", 80, "/"),
    ("ws://example.com?x", "example.com", 80, "/?x"),
    ("http://a-b_c.d:65535/%20", "a-b_c.d", 65535, "/%20"),
  ])
  func wellFormedIsTakenApart(text: String, host: String, port: Int, target: String) throws {
    let url = try HTTPURL(text)
    #expect(url.address == SocketAddress(host: host, port: port))
    #expect(url.target == target)
    #expect(try HTTPURL(url.description) == url)
  }

  @Test(arguments: [
    ("wss://a/", "TLS"), ("https://a/", "TLS"), ("ftp://a/", "scheme"), ("a:80", "ws://"), ("", "ws://"), ("ws:/a", "ws://"),
    ("ws://", "host"), ("ws:///path", "host"), ("ws://:80", "host"), ("ws://a:", "port"), ("ws://a:0", "port"), ("ws://a:65536", "port"),
    ("ws://a:8o", "port"), ("ws://a:-1", "port"), ("ws://a:+80", "port"), ("ws://::1/", "host"), ("ws://[::1/", "host"),
    ("ws://a/#f", "fragment"),
    ("ws://u:p@a/", "user"), ("ws://a b/", "percent"), ("ws://a/\r\nX: y", "percent"), ("ws://ä/", "percent"), ("ws://a!b/", "host"),
  ])
  func anythingElseSaysWhatIsWrong(text: String, reason: String) {
    do {
      let url = try HTTPURL(text)
      Issue.record("'\(text)' was read as \(url)")
    } catch {
      let parts = error.description.split(separator: "is no usable URL: ")
      #expect(parts.count == 2 && parts[1].contains(reason), "\(error)")
      #expect(!error.description.contains("\n"))
      #expect(!error.isRetriable)
    }
  }
}
