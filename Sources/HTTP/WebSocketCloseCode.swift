/// The reason for closing a WebSocket connection, in its close frame (RFC 6455, section 7.4, and its registry).
public struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The code; 3000 to 4999 are for libraries and applications.
  public let rawValue: UInt16

  /// Makes a code from its number.
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  /// 1000: done.
  public static let normal = WebSocketCloseCode(rawValue: 1000)
  /// 1001: the endpoint goes away.
  public static let goingAway = WebSocketCloseCode(rawValue: 1001)
  /// 1002: a frame broke the protocol.
  static let protocolError = WebSocketCloseCode(rawValue: 1002)
  /// 1005: the close frame had no code; never sent.
  static let none = WebSocketCloseCode(rawValue: 1005)
  /// 1006: there was no close frame; never sent.
  public static let abnormal = WebSocketCloseCode(rawValue: 1006)
  /// 1007: a text that is not UTF-8.
  static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
  /// 1008: a violation of the endpoint's rules.
  public static let policyViolation = WebSocketCloseCode(rawValue: 1008)
  /// 1009: too big.
  static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
  /// 1012: the server restarts.
  public static let serviceRestart = WebSocketCloseCode(rawValue: 1012)
  /// 1013: try again later.
  public static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)

  /// Whether a close frame may contain it.
  var isSendable: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }

  /// The number.
  public var description: String { String(rawValue) }
}
