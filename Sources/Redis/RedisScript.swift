import Cryptography

/// A Lua script that runs in Redis, called by the SHA-1 of its source.
///
/// A connection loads the scripts of its configuration before it is up, and again if the server has forgotten one.
public final class RedisScript: Sendable, Hashable {
  /// The Lua source.
  public let source: String
  /// The SHA-1 of the source, 40 lower-case hexadecimal digits, for EVALSHA.
  public let sha1: String

  /// Makes a script. A server checks it when it loads it.
  public init(_ source: String) {
    self.source = source
    sha1 = Digest.sha1(source).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// Two scripts are equal if their sources are.
  public static func == (a: RedisScript, b: RedisScript) -> Bool { a === b || a.sha1 == b.sha1 }

  /// Hashes the source's digest.
  public func hash(into hasher: inout Hasher) { hasher.combine(sha1) }
}
