import EventLoop

/// The address of a Redis, with the user and password of the client.
///
/// Read from `HOST:PORT`, `redis://[user:password@]host[:port][/db]`, the same with `rediss://` for TLS,
/// `unix:[//[user:password@]]/path[?db=n]` or `/path[?db=n]`. User and password are percent-encoded in URLs. Only `textWithPassword`
/// contains the password.
public struct RedisAddress: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The way to the server.
  public enum Endpoint: Sendable, Hashable {
    /// An IPv4 or IPv6 address without brackets, or a name, and a port.
    case tcp(host: String, port: Int)
    /// The path of a Unix socket, at most 107 bytes.
    case unix(path: String)
  }

  /// The way to the server.
  public var endpoint: Endpoint
  /// The user to authenticate as; nil for the default user.
  public var user: String?
  /// The password; nil for no authentication.
  public var password: String?
  /// The database to select.
  public var database: Int
  /// The files of TLS; nil for connections without it.
  public var tls: RedisTLS?

  /// An address of its parts.
  public init(_ endpoint: Endpoint, user: String? = nil, password: String? = nil, database: Int = 0, tls: RedisTLS? = nil) {
    self.endpoint = endpoint
    self.user = user
    self.password = password
    self.database = database
    self.tls = tls
  }

  /// Reads an address strictly. The error names the mistake.
  public init(_ text: String) throws(RedisError) {
    guard !text.isEmpty else { throw Self.bad("the Redis address is empty; write HOST:PORT, redis://host:port/db or the path of a socket") }
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
      throw Self.bad("the Redis address has a space or control character in it")
    }
    if text.hasPrefix("/") {
      self = try Self.unix(text, userInfo: nil)
    } else if text.hasPrefix("unix:") {
      self = try Self.unixURL(text.dropFirst(5))
    } else if let scheme = text.firstRange(of: "://") {
      self = try Self.url(scheme: text[..<scheme.lowerBound], rest: text[scheme.upperBound...])
    } else {
      try Self.refuseList(text)
      if text.contains("@") { throw Self.bad("a Redis address with user and password is written redis://user:password@host:port") }
      self.init(try Self.hostAndPort(text[...], portWhenAbsent: nil))
    }
  }

  /// `redis://user:***@host:port/db` or `unix:/path?db=n`, without the password.
  public var description: String { text(who: password == nil ? "" : "\(user ?? ""):***@") }

  /// The text with the password, for a client that connects there; never log it.
  public var textWithPassword: String {
    text(who: password.map { "\(user.map(PercentEncoding.encode) ?? ""):\(PercentEncoding.encode($0))@" } ?? "")
  }

  private func text(who: String) -> String {
    switch endpoint {
    case .tcp(let host, let port):
      let host = host.contains(":") ? "[\(host)]" : host
      return "\(tls == nil ? "redis" : "rediss")://\(who)\(host):\(port)\(database == 0 ? "" : "/\(database)")"
    case .unix(let path): return "unix:\(who.isEmpty ? "" : "//\(who)")\(path)\(database == 0 ? "" : "?db=\(database)")"
    }
  }

  /// Only the description, so that no dump shows the password.
  public var customMirror: Mirror { Mirror(self, children: ["address": description]) }
}

extension RedisAddress {
  private static func bad(_ message: String) -> RedisError { RedisError(.badAddress, message) }

  private static func refuseList(_ text: some StringProtocol) throws(RedisError) {
    if text.contains(",") {
      throw RedisError(.notInThisVersion, "several Redis addresses (a Redis Cluster) are not in this version; give one address")
    }
  }

  private static func url(scheme: Substring, rest: Substring) throws(RedisError) -> RedisAddress {
    guard scheme == "redis" || scheme == "rediss" else {
      throw bad("\(scheme.prefix(40)):// is no scheme of a Redis address; write redis://host:port/db, or rediss:// for TLS")
    }
    var rest = rest
    if rest.contains("?") || rest.contains("#") {
      throw bad("a \(scheme):// address takes no ? or #; write the database as \(scheme)://host:port/db")
    }
    var userInfo: Substring?
    if let at = rest.lastIndex(of: "@") {
      userInfo = rest[..<at]
      rest = rest[rest.index(after: at)...]
    }
    try refuseList(rest)
    var database = 0
    if let slash = rest.firstIndex(of: "/") {
      let path = rest[rest.index(after: slash)...]
      rest = rest[..<slash]
      if !path.isEmpty { database = try Self.database(path) }
    }
    var address = RedisAddress(
      try hostAndPort(rest, portWhenAbsent: 6379), database: database, tls: scheme == "rediss" ? RedisTLS() : nil)
    if let userInfo { try address.authenticate(userInfo) }
    return address
  }

  private static func unixURL(_ rest: Substring) throws(RedisError) -> RedisAddress {
    guard rest.hasPrefix("//") else { return try unix(String(rest), userInfo: nil) }
    let rest = rest.dropFirst(2)
    guard let slash = rest.firstIndex(of: "/") else { throw bad("a unix: address needs the absolute path of a socket: unix:/path") }
    guard slash > rest.startIndex else { return try unix(String(rest), userInfo: nil) }
    guard rest[rest.index(before: slash)] == "@" else { throw bad("a unix: address has no host; write unix:/path") }
    return try unix(String(rest[slash...]), userInfo: rest[..<rest.index(before: slash)])
  }

  private static func unix(_ text: String, userInfo: Substring?) throws(RedisError) -> RedisAddress {
    var path = text[...]
    var database = 0
    if let mark = path.firstIndex(of: "?") {
      let query = path[path.index(after: mark)...]
      path = path[..<mark]
      guard query.hasPrefix("db=") else { throw bad("the address of a Redis socket takes ?db=n and nothing else after the path") }
      database = try Self.database(query.dropFirst(3))
    }
    guard path.hasPrefix("/"), !path.hasSuffix("/") else { throw bad("a unix: address needs the absolute path of a socket: unix:/path") }
    guard path.utf8.count <= 107 else {
      throw bad("the path of the Redis socket is longer than the 107 bytes that a Unix socket's may have")
    }
    var address = RedisAddress(.unix(path: String(path)), database: database)
    if let userInfo { try address.authenticate(userInfo) }
    return address
  }

  private mutating func authenticate(_ userInfo: Substring) throws(RedisError) {
    guard let colon = userInfo.firstIndex(of: ":") else {
      throw Self.bad("the Redis address has a user without a password; write redis://user:password@host, or redis://:password@host")
    }
    guard let user = PercentEncoding.decode(userInfo[..<colon].utf8),
      let password = PercentEncoding.decode(userInfo[userInfo.index(after: colon)...].utf8)
    else { throw Self.bad("user or password of the Redis address has a % that is not followed by two hexadecimal digits") }
    guard !password.isEmpty else { throw Self.bad("the password of the Redis address is empty") }
    self.user = user.isEmpty ? nil : user
    self.password = password
  }

  private static func hostAndPort(_ text: Substring, portWhenAbsent: Int?) throws(RedisError) -> Endpoint {
    var host = text
    var digits: Substring?
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { throw bad("the Redis address has [ without ]") }
      host = text[text.index(after: text.startIndex)..<end]
      let rest = text[text.index(after: end)...]
      guard host.contains(":"), SocketAddress(host: String(host), port: 0).isNumeric else { throw bad("[\(host)] is no IPv6 address") }
      guard rest.isEmpty || rest.hasPrefix(":") else { throw bad("after ] of the Redis address only :PORT may follow") }
      digits = rest.isEmpty ? nil : rest.dropFirst()
    } else if let colon = text.firstIndex(of: ":") {
      host = text[..<colon]
      digits = text[text.index(after: colon)...]
      if digits?.contains(":") == true { throw bad("the Redis address \(text) has too many colons; an IPv6 address stands in brackets") }
    }
    guard !host.isEmpty else { throw bad("the Redis address has no host") }
    guard host.utf8.allSatisfy({ $0 < 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "%") }) else {
      throw bad("\(host) is no host name; write a name that is not ASCII in its xn-- form")
    }
    guard let digits else {
      guard let portWhenAbsent else { throw bad("the Redis address \(host) has no port; write \(host):6379") }
      return .tcp(host: String(host), port: portWhenAbsent)
    }
    guard let port = number(digits), (1...65535).contains(port) else { throw bad("\(digits) is no port; a port is 1 to 65535") }
    return .tcp(host: String(host), port: port)
  }

  private static func database(_ text: Substring) throws(RedisError) -> Int {
    guard let number = number(text) else { throw bad("\(text) is no Redis database; it is a number from 0") }
    return number
  }

  private static func number(_ text: Substring) -> Int? {
    guard (1...9).contains(text.utf8.count), text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      return nil
    }
    return Int(text)
  }
}
