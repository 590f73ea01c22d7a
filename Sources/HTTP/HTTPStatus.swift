import CHTTPParser

/// A response's status code.
public struct HTTPStatus: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// Three digits.
  public let rawValue: Int

  /// Makes a status from its code.
  ///
  /// - Parameter rawValue: 200 to 599 for a response that a handler gives.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// 200.
  public static let ok = HTTPStatus(rawValue: 200)
  /// 202.
  public static let accepted = HTTPStatus(rawValue: 202)
  /// 204: never with a body.
  public static let noContent = HTTPStatus(rawValue: 204)
  /// 206: with `Content-Range`.
  static let partialContent = HTTPStatus(rawValue: 206)
  /// 207: several outcomes, each with a status of its own.
  public static let multiStatus = HTTPStatus(rawValue: 207)
  /// 304: never with a body.
  public static let notModified = HTTPStatus(rawValue: 304)
  /// 400.
  public static let badRequest = HTTPStatus(rawValue: 400)
  /// 401: with `WWW-Authenticate`.
  public static let unauthorized = HTTPStatus(rawValue: 401)
  /// 403.
  public static let forbidden = HTTPStatus(rawValue: 403)
  /// 404.
  public static let notFound = HTTPStatus(rawValue: 404)
  /// 405: with `Allow`.
  public static let methodNotAllowed = HTTPStatus(rawValue: 405)
  /// 408.
  static let requestTimeout = HTTPStatus(rawValue: 408)
  /// 413.
  public static let contentTooLarge = HTTPStatus(rawValue: 413)
  /// 416: with `Content-Range`.
  static let rangeNotSatisfiable = HTTPStatus(rawValue: 416)
  /// 417.
  static let expectationFailed = HTTPStatus(rawValue: 417)
  /// 426: with `Upgrade`.
  static let upgradeRequired = HTTPStatus(rawValue: 426)
  /// 429.
  public static let tooManyRequests = HTTPStatus(rawValue: 429)
  /// 431.
  static let headerFieldsTooLarge = HTTPStatus(rawValue: 431)
  /// 500.
  public static let internalServerError = HTTPStatus(rawValue: 500)
  /// 501.
  static let notImplemented = HTTPStatus(rawValue: 501)
  /// 503.
  public static let serviceUnavailable = HTTPStatus(rawValue: 503)
  /// 505.
  static let versionNotSupported = HTTPStatus(rawValue: 505)

  /// The phrase that follows the code on the status line; clients ignore it.
  var reason: String { String(cString: http_status_str(http_status(rawValue: UInt32(clamping: rawValue)))) }

  /// Code and phrase.
  public var description: String { "\(rawValue) \(reason)" }

  /// A response with this status never has a body (RFC 9110, section 6.4.1).
  var forbidsBody: Bool { rawValue < 200 || rawValue == 204 || rawValue == 304 }
}
