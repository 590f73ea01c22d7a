public import Notifications

/// The properties of a notification for a service extension, without its content.
public struct ExtensionRequest: Sendable {
  /// The apns-id.
  public var id: NotificationID
  /// The request's identifier: a newer request replaces an older one.
  public var identifier: Name
  /// The application's bundle id.
  public var application: Name
  /// The time until which it may be shown, in seconds since 1970; 0 allows one attempt.
  public var expiration: Int64
  /// The device's registered locale, such as `de_AT`; nil if it has none.
  public var locale: String?
  /// The request's W3C trace context, as far as it is passed on; nil without one.
  public var traceparent: String?
  /// The device's token, if the extension is called for each device.
  public internal(set) var device: String?
  /// Distinguishes the calls for different locales or devices; nil if it is called once.
  var variant: Name?
  /// The name of the called extension in the file.
  public internal(set) var extensionName = ""

  /// A request from its parts.
  public init(
    id: NotificationID, identifier: Name, application: Name, expiration: Int64, locale: String? = nil, traceparent: String? = nil
  ) {
    (self.id, self.identifier, self.application) = (id, identifier, application)
    (self.expiration, self.locale, self.traceparent) = (expiration, locale, traceparent)
  }

  /// Equal for all calls of the extension for this notification, so that a server can repeat its answer.
  public var idempotencyKey: String { "\(id)_\(extensionName)" + (variant.map { "_\($0)" } ?? "") }

  /// The same request for one of the variants of a chain.
  ///
  /// - Parameters:
  ///   - variant: ``ExtensionChain/variant(of:_:)``.
  ///   - device: its token, if the call is for one device.
  public func varied(_ variant: Name, device: String?) -> ExtensionRequest {
    var request = self
    (request.variant, request.device) = (Name(String(StableHash.hash(variant), radix: 16)), device)
    return request
  }

  func named(_ name: String) -> ExtensionRequest {
    var request = self
    request.extensionName = name
    return request
  }
}
