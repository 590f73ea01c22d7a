import Extensions
import JSON
import Notifications

/// Applies the device's own service extensions to payloads before they are shown. The device keeps and acknowledges the received payload.
struct ServiceExtensions: Sendable {
  /// Nil to show payloads as received.
  let chain: ExtensionChain?
  /// The device's.
  let locale: String?
  static let rules = ContentRules()

  /// A notification's content. It is as received if it is not mutable, or if its extensions fail.
  func content(of frame: NotifyFrame) -> NotificationContent {
    guard let chain, let request = request(of: frame, for: chain.application),
      let payload = frame.payload.withUnsafeBytes({ try? JSONValue(parsing: $0) })
    else { return NotificationContent(payload: frame.payload) }
    var run = ExtensionRun(MutableContent(payload: payload))
    run.pass(chain.immediate, of: request, Self.rules)
    return NotificationContent(run.content.payload)
  }

  /// What an extension gets with a notification; nil if no extension may change it: only an alert whose payload says that it is mutable.
  func request(of frame: NotifyFrame, for application: Name) -> ExtensionRequest? {
    guard frame.pushType == PushType.alert.name.description, Self.isMutable(frame.payload), let id = NotificationID(frame.id) else {
      return nil
    }
    return ExtensionRequest(
      id: id, identifier: frame.identifier, application: application, expiration: frame.expiration, locale: locale,
      traceparent: frame.traceparent)
  }

  private static func isMutable(_ payload: [UInt8]) -> Bool {
    payload.withUnsafeBytes { (try? PayloadFacts(checking: $0))?.flags.isMutable ?? false }
  }
}
