public import Notifications

/// What a service extension is told of a notification beside its content.
public struct ExtensionRequest: Sendable {
  /// The apns-id.
  public var id: NotificationID
  /// The request's identifier: a newer one takes the place of an older one.
  public var identifier: Name
  /// The application's bundle id.
  public var application: Name
  /// Until when it may be shown, in seconds since 1970; 0 is one attempt.
  public var expiration: Int64
  /// The device's locale, as it registered it: `de_AT`; nil where it has none.
  public var locale: String?
  /// The W3C trace context that the request came with, as far as it is carried on; nil where it came with none.
  public var traceparent: String?
  /// The device's token, where the extension is called for each device.
  public internal(set) var device: String?
  /// Tells the calls for different locales or devices apart; nil where it is called once.
  var variant: Name?
  /// What the file calls the extension that is told of it.
  public internal(set) var extensionName = ""

  /// A request from its parts.
  public init(
    id: NotificationID, identifier: Name, application: Name, expiration: Int64, locale: String? = nil, traceparent: String? = nil
  ) {
    (self.id, self.identifier, self.application) = (id, identifier, application)
    (self.expiration, self.locale, self.traceparent) = (expiration, locale, traceparent)
  }

  /// The same whenever the extension is called for this notification, so that whoever is asked can answer the same again.
  public var idempotencyKey: String { "\(id)_\(extensionName)" + (variant.map { "_\($0)" } ?? "") }

  /// The same for one of the variants of a chain.
  ///
  /// - Parameters:
  ///   - variant: ``ExtensionChain/variant(of:_:)``.
  ///   - device: its token, where it is a device's own.
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
