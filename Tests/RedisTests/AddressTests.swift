import Redis
import Testing

@Suite struct AddressTests {
  @Test(arguments: [
    ("localhost:6379", RedisAddress(.tcp(host: "localhost", port: 6379))),
    ("[::1]:7000", RedisAddress(.tcp(host: "::1", port: 7000))),
    ("redis://cache.example", RedisAddress(.tcp(host: "cache.example", port: 6379))),
    ("redis://cache.example:1/", RedisAddress(.tcp(host: "cache.example", port: 1))),
    ("redis://cache.example:1/15", RedisAddress(.tcp(host: "cache.example", port: 1), database: 15)),
    ("redis://[fe80::1]/2", RedisAddress(.tcp(host: "fe80::1", port: 6379), database: 2)),
    ("redis://ada:p%40ss%2Fw%3A@h:1", RedisAddress(.tcp(host: "h", port: 1), user: "ada", password: "p@ss/w:")),
    ("redis://:p,w@h:1", RedisAddress(.tcp(host: "h", port: 1), password: "p,w")),
    ("rediss://cache.example", RedisAddress(.tcp(host: "cache.example", port: 6379), tls: RedisTLS())),
    ("rediss://ada:p%40ss@h:1/2", RedisAddress(.tcp(host: "h", port: 1), user: "ada", password: "p@ss", database: 2, tls: RedisTLS())),
    ("/run/redis.sock", RedisAddress(.unix(path: "/run/redis.sock"))),
    ("/run/redis.sock?db=3", RedisAddress(.unix(path: "/run/redis.sock"), database: 3)),
    ("unix:/run/redis.sock?db=3", RedisAddress(.unix(path: "/run/redis.sock"), database: 3)),
    ("unix:///run/redis.sock", RedisAddress(.unix(path: "/run/redis.sock"))),
    ("unix://:secret@/run/redis.sock", RedisAddress(.unix(path: "/run/redis.sock"), password: "secret")),
  ])
  func isReadInEachForm(_ text: String, _ address: RedisAddress) throws {
    #expect(try RedisAddress(text) == address)
    #expect(try RedisAddress(address.textWithPassword) == address)
  }

  @Test(arguments: [
    ("", "empty"), ("localhost", "no port"), (":6379", "no host"), ("h:0", "no port; a port is"), ("h:65536", "a port is"),
    ("h:6a", "a port is"),
    ("h:+1", "a port is"), ("h:", "a port is"), ("h:1:2", "brackets"), ("[::1", "without ]"), ("[h]:1", "no IPv6"),
    ("[::1]1", "may follow"),
    ("h :1", "space"), ("h:1\n", "space"), ("http://h:1", "no scheme"), ("redis://", "no host"), ("redis://h/x", "no Redis database"),
    ("redis://h/1/2", "no Redis database"), ("redis://h/-1", "no Redis database"), ("redis://h?db=1", "no ?"),
    ("redis://ada@h", "without a password"),
    ("redis://ada:@h", "password of the Redis address is empty"), ("redis://a:%zz@h", "hexadecimal"), ("a:b@h:1", "redis://user"),
    ("unix:relative", "absolute"), ("unix://host/path", "no host"), ("/run/", "absolute"), ("/run/x?database=1", "?db=n"),
    ("/" + String(repeating: "x", count: 107), "107"), ("hé:1", "xn--"),
  ])
  func whatIsWrongIsNamed(_ text: String, _ part: String) {
    let error = #expect(throws: RedisError.self) { try RedisAddress(text) }
    #expect(error?.code == .badAddress)
    #expect(error?.message.contains(part) == true, "\(error?.message ?? "")")
  }

  @Test(arguments: ["a:1,b:2", "redis://a:1,b:2", "rediss://a:1,b:2", "redis://u:p@a:1,b:2/3"])
  func clustersAreNotInThisVersion(_ text: String) {
    let error = #expect(throws: RedisError.self) { try RedisAddress(text) }
    #expect(error?.code == .notInThisVersion)
  }

  @Test(arguments: ["redis://ada:hunter2@h:1/5", "rediss://ada:hunter2@h:1/5", "unix://ada:hunter2@/run/x?db=5"])
  func noTextShowsThePassword(_ text: String) throws {
    let address = try RedisAddress(text)
    var dumped = ""
    dump(RedisConfiguration(address), to: &dumped)
    for shown in ["\(address)", String(reflecting: address), "\(RedisConfiguration(address))", dumped] {
      #expect(!shown.contains("hunter2"))
      #expect(shown.contains("ada"))
    }
    #expect("\(address)".contains("5"))
  }

  @Test func anErrorNeverShowsThePassword() {
    for text in [
      "redis://ada:hunter2@h:x", "redis://ada:hunter2@h/x", "ada:hunter2@h:1", "redis://ada:hunter2%@h", "unix://ada:hunter2@x/y?z",
    ] {
      let error = #expect(throws: RedisError.self) { try RedisAddress(text) }
      #expect(error?.message.contains("hunter2") == false, "\(text)")
    }
  }
}
