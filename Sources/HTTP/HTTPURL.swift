public import EventLoop

/// A URL of a server, taken apart strictly (RFC 3986): what is not understood is an error, never guessed.
public struct HTTPURL: Sendable, Hashable, CustomStringConvertible {
  /// The protocols that are known.
  public enum Scheme: String, Sendable {
    /// HTTP.
    case http
    /// WebSocket.
    case ws
  }

  /// The protocol.
  public let scheme: Scheme
  /// Host and port; port 80 where the URL has none.
  public let address: SocketAddress
  /// Path and query as they stand on a request line; at least `/`.
  public let target: String

  /// Why a text is not a URL that can be used.
  public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong, and what to write instead.
    public let description: String
    /// Another try with the same text fails alike.
    public var isRetriable: Bool { false }
  }

  /// Reads a URL of the form `ws://HOST[:PORT][/PATH][?QUERY]`.
  public init(_ text: String) throws(Failure) {
    func failure(_ reason: String) -> Failure {
      Failure(description: "'\(text.prefix(300).description.withoutLineBreaks)' is no usable URL: \(reason)")
    }
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw failure("spaces, control and non-ASCII characters must be percent-encoded")
    }
    guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else {
      throw failure("it must begin with ws:// or http://")
    }
    let schemeName = text[..<colon].lowercased()
    if schemeName == "wss" || schemeName == "https" {
      throw failure("TLS (\(schemeName)://) is not supported here; use ws:// or http://, through a proxy that ends TLS if need be")
    }
    guard let scheme = Scheme(rawValue: schemeName) else { throw failure("its scheme must be ws or http") }
    let rest = text[text.index(colon, offsetBy: 3)...]
    let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
    let authority = rest[..<authorityEnd]
    var target = rest[authorityEnd...]
    if target.contains("#") { throw failure("a fragment (#) is not allowed") }
    if authority.contains("@") { throw failure("a user or password before @ is not allowed") }
    guard let address = Self.address(authority) else { throw failure("after :// a host must come, and a port of 1 to 65535 if any") }
    if !target.hasPrefix("/") { target = "/" + target }
    self.scheme = scheme
    self.address = address
    self.target = String(target)
  }

  private static func address(_ authority: Substring) -> SocketAddress? {
    // A colon inside an IPv6 address' brackets is none before a port.
    let afterHost = authority.lastIndex(of: "]") ?? authority.startIndex
    let hasPort = authority[afterHost...].contains(":")
    guard let address = SocketAddress(hasPort ? String(authority) : "\(authority):80"), address.port > 0 else { return nil }
    let isBracketed = authority.hasPrefix("[")
    let isHostByte: (UInt8) -> Bool = { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
      case UInt8(ascii: ":"): isBracketed
      default: false
      }
    }
    return address.host.utf8.allSatisfy(isHostByte) ? address : nil
  }

  /// The URL, with its port.
  public var description: String { "\(scheme.rawValue)://\(address)\(target)" }
}
